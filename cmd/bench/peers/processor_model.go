package main

// This file reads what the processor is called, where /proc tells.

import (
	"os"
	"strings"
)

// processorModel is the processor's name, "" if it is not known.
func processorModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	return modelIn(string(text))
}

// modelIn finds the name in the text of /proc/cpuinfo.
func modelIn(text string) string {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
