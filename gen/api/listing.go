package main

// This file writes down what one package exports: its declarations without comments,
// bodies and what is not exported.

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
)

// listing returns the exported declarations of the package in a directory, nil if there
// is none, or a command. Files for other systems than Linux export nothing else.
func listing(directory, local string) ([]byte, error) {
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled = "linux", "amd64", false
	found, err := context.ImportDir(directory, 0)
	if none := (*build.NoGoError)(nil); errors.As(err, &none) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if found.Name == "main" {
		return nil, nil
	}
	places := token.NewFileSet()
	var files []*ast.File
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(places, filepath.Join(directory, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	about, err := doc.NewFromFiles(places, files, local)
	if err != nil {
		return nil, err
	}
	w := &writer{places: token.NewFileSet()}
	fmt.Fprintf(w, "package %s // %s\n", about.Name, local)
	w.values(about.Consts)
	w.values(about.Vars)
	w.functions(about.Funcs)
	for _, t := range about.Types {
		w.declaration(t.Decl)
		w.values(t.Consts)
		w.values(t.Vars)
		w.functions(t.Funcs)
		w.functions(t.Methods)
	}
	return w.Bytes(), w.err
}

// layout is that of gofmt.
var layout = printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8}

// A writer writes declarations. Positions in sources mean nothing to it, so the lines
// are the printer's own.
type writer struct {
	bytes.Buffer
	places *token.FileSet
	err    error
}

func (w *writer) values(all []*doc.Value) {
	for _, v := range all {
		w.declaration(v.Decl)
	}
}

func (w *writer) functions(all []*doc.Func) {
	for _, f := range all {
		w.declaration(f.Decl)
	}
}

// declaration writes one without its comments and body.
func (w *writer) declaration(declared ast.Decl) {
	ast.Inspect(declared, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			n.Doc, n.Body = nil, nil
		case *ast.GenDecl:
			n.Doc = nil
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.ValueSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		case *ast.StructType:
			n.Incomplete = false // or the printer says so, where no line is
		}
		return true
	})
	w.WriteByte('\n')
	w.err = errors.Join(w.err, layout.Fprint(w, w.places, declared))
	w.WriteByte('\n')
}
