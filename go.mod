module github.com/hanzoai/limiters

go 1.26.0
