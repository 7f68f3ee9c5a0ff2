// Package exposition writes and reads the metrics of this repository in the
// Prometheus text format, with the help and the type of each, and sees to it that no
// time series of a process is exposed twice.
package exposition
