package main

// This file judges ratios by those that were committed.

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// margin is how many times a committed ratio may be exceeded: machines differ, and
// what a regression is for shows above that.
const margin = 1.5

// gated are the ratios that are judged.
var gated = []string{"xtime", floor}

// readRatios reads the ratio lines of a file that this command wrote.
func readRatios(path string) (map[string]float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	found := map[string]float64{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) != 3 || words[0] != "ratio" {
			continue
		}
		value, err := strconv.ParseFloat(words[2], 64)
		if err != nil || !(value > 0) {
			return nil, fmt.Errorf("%s: %q: want a ratio above 0", path, lines.Text())
		}
		found[words[1]] = value
	}
	for _, name := range gated {
		if found[name] == 0 {
			return nil, fmt.Errorf("%s has no line \"ratio %s …\"", path, name)
		}
	}
	return found, nil
}

// judge returns what exceeds its committed ratio by more than the margin.
func judge(found []figure, committed map[string]float64) (problems []string) {
	for _, name := range gated {
		for _, f := range found {
			if limit := margin * committed[name]; f.name == name && !(f.ratio <= limit) {
				problems = append(problems, fmt.Sprintf("ratio %s is %.3f, above %.3f (%.1f × the committed %.3f)",
					name, f.ratio, limit, margin, committed[name]))
			}
		}
	}
	return problems
}
