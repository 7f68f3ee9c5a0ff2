package tick

// This file profiles a tick run.

import (
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
)

// memProfileRate is how many bytes lie between two allocations that are noted: fine
// enough for a run of seconds.
const memProfileRate = 4096

// startProfiles profiles into files until stop, which writes them; "" is none. It
// is for one run of a process.
func startProfiles(cpu, mem string) (stop func() error, err error) {
	var cpuFile *os.File
	if cpu != "" {
		if cpuFile, err = os.Create(cpu); err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(cpuFile); err != nil {
			return nil, errors.Join(err, cpuFile.Close())
		}
	}
	if mem != "" {
		runtime.MemProfileRate = memProfileRate
	}
	return func() error {
		var errs []error
		if cpuFile != nil {
			pprof.StopCPUProfile()
			errs = append(errs, cpuFile.Close())
		}
		if mem != "" {
			errs = append(errs, writeMemProfile(mem))
		}
		return errors.Join(errs...)
	}, nil
}

// writeMemProfile writes what was allocated since the start.
func writeMemProfile(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	runtime.GC() // brings the profile up to date
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}
