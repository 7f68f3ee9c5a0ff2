// This file is the backend that runs a container, through dockertest's client.

package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"

	"github.com/hanzoai/limiters/internal/heldport"
)

// LocalImage is what image/build.sh makes; PublicImage is pulled where it is not.
const (
	LocalImage  = "limiters-redis:local"
	PublicImage = "redis:7-alpine"
)

// label marks our containers, so that those of a killed test can be removed.
const label = "limiters.redistest"

// A container is a server in Docker, on a fixed port of the loopback interface.
type container struct {
	client *docker.Client
	id     string
}

// daemon is the Docker daemon and the image, looked for once.
var daemon = sync.OnceValues(func() (found struct {
	client *docker.Client
	image  string
}, err error,
) {
	pool, err := dockertest.NewPool("")
	if err != nil {
		return found, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := pool.Client.PingWithContext(ctx); err != nil {
		return found, fmt.Errorf("no Docker: %w", err)
	}
	found.client = pool.Client
	found.image, err = findImage(pool.Client)
	if err == nil {
		removeOld(pool.Client)
	}
	return found, err
})

// findImage returns an image that is present, having pulled it if need be.
func findImage(client *docker.Client) (string, error) {
	image := os.Getenv("REDIS_IMAGE")
	if image == "" {
		if _, err := client.InspectImage(LocalImage); err == nil {
			return LocalImage, nil
		}
		image = PublicImage
	}
	if _, err := client.InspectImage(image); err == nil {
		return image, nil
	}
	// A pull may take a minute; one of which nothing is heard is given up soon.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	repository, tag := docker.ParseRepositoryTag(image)
	if tag == "" {
		tag = "latest"
	}
	err := client.PullImage(docker.PullImageOptions{
		Repository: repository, Tag: tag, Context: ctx, InactivityTimeout: 4 * time.Second,
	}, docker.AuthConfiguration{})
	if err == nil {
		_, err = client.InspectImage(image)
	}
	if err != nil {
		return "", fmt.Errorf("image %s cannot be had (image/build.sh makes a local one): %w", image, err)
	}
	return image, nil
}

// removeOld removes containers that a killed test left behind.
func removeOld(client *docker.Client) {
	old, err := client.ListContainers(docker.ListContainersOptions{All: true, Filters: map[string][]string{"label": {label}}})
	if err != nil {
		return
	}
	for _, c := range old {
		if time.Since(time.Unix(c.Created, 0)) > 15*time.Minute {
			_ = client.RemoveContainer(docker.RemoveContainerOptions{ID: c.ID, Force: true, RemoveVolumes: true})
		}
	}
}

func startContainer(_ testing.TB, s *settings) (instance, string, error) {
	found, err := daemon()
	if err != nil {
		return nil, "", err
	}
	port, err := heldport.Hold()
	if err != nil {
		return nil, "", err
	}
	// Not every Docker can listen on a port that is held.
	if err := port.Release(); err != nil {
		return nil, "", err
	}
	created, err := found.client.CreateContainer(docker.CreateContainerOptions{
		Config: &docker.Config{
			Image: found.image,
			Cmd: append([]string{
				"redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--appendonly", "no",
			}, s.args...),
			ExposedPorts: map[docker.Port]struct{}{"6379/tcp": {}},
			Labels:       map[string]string{label: strconv.Itoa(os.Getpid())},
		},
		HostConfig: &docker.HostConfig{PortBindings: map[docker.Port][]docker.PortBinding{
			"6379/tcp": {{HostIP: heldport.Host, HostPort: strconv.Itoa(port.Number())}},
		}},
	})
	if err != nil {
		return nil, "", err
	}
	c := &container{client: found.client, id: created.ID}
	if err := c.restart(); err != nil {
		c.stop()
		return nil, "", err
	}
	describe(Container, found.image)
	return c, fmt.Sprintf("redis://%s:%d", heldport.Host, port.Number()), nil
}

func (c *container) restart() error { return c.client.StartContainer(c.id, nil) }

func (c *container) stop() {
	_ = c.client.RemoveContainer(docker.RemoveContainerOptions{ID: c.id, Force: true, RemoveVolumes: true})
}

func (c *container) kill() error {
	err := c.client.KillContainer(docker.KillContainerOptions{ID: c.id, Signal: docker.SIGKILL})
	if err == nil {
		// The port is free again only when Docker has noticed.
		_, err = c.client.WaitContainer(c.id)
	}
	var not *docker.ContainerNotRunning
	if errors.As(err, &not) || err != nil && strings.Contains(err.Error(), "is not running") {
		return nil
	}
	return err
}

func (c *container) pause() error  { return c.client.PauseContainer(c.id) }
func (c *container) resume() error { return c.client.UnpauseContainer(c.id) }

func (c *container) advance(time.Duration) error { return errNot }
