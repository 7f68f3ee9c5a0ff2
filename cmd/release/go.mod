// What makes a release stays out of the library's go.mod.
module github.com/hanzoai/limiters/cmd/release

go 1.26.0

require golang.org/x/mod v0.42.0
