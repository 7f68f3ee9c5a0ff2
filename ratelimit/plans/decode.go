package plans

// This file reads YAML into the types of a file, strictly: a name that is not known, a
// name twice, a value of another kind is an error with its line and field.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Bounds of a file.
const (
	maxBytes = 4 << 20
	maxNodes = 1 << 19 // aliases followed
)

// A decoder reads one file.
type decoder struct {
	file     string
	problems Problems
	lines    map[string]int // of each field, by its path
	nodes    int
}

// decode reads text into a file. Problems that it finds are in d.
func (d *decoder) decode(text []byte) *File {
	f := &File{}
	if len(text) > maxBytes {
		d.add(0, "", "it is larger than %d bytes", maxBytes)
		return f
	}
	if !utf8.Valid(text) {
		valid := strings.ToValidUTF8(string(text), "\x00")
		d.add(1+strings.Count(valid[:strings.IndexByte(valid, 0)], "\n"), "", "it is not UTF-8")
		return f
	}
	reader := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	if err := reader.Decode(&document); errors.Is(err, io.EOF) {
		d.add(0, "", "it is empty: want limits and routes")
		return f
	} else if err != nil {
		d.syntax(err)
		return f
	}
	if err := reader.Decode(&more); err == nil {
		d.add(more.Line, "", "a second document begins here: want one")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
	}
	d.value(document.Content[0], reflect.ValueOf(f).Elem(), "")
	return f
}

var syntaxLine = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// syntax adds what the library says of text that is no YAML.
func (d *decoder) syntax(err error) {
	line, text := 0, err.Error()
	if match := syntaxLine.FindStringSubmatch(text); match != nil {
		line, _ = strconv.Atoi(match[1])
		if text = match[2]; strings.HasPrefix(text, "did not find expected") { // the library counts from 0 here
			line++
		}
	}
	d.add(line, "", "it is no YAML: %s", text)
}

func (d *decoder) add(line int, field, format string, args ...any) {
	d.problems = append(d.problems, Problem{d.file, line, field, fmt.Sprintf(format, args...)})
}

// value reads a node into v.
func (d *decoder) value(n *yaml.Node, v reflect.Value, field string) {
	if d.nodes++; d.nodes > maxNodes {
		if d.nodes == maxNodes+1 {
			d.add(n.Line, field, "the file, aliases followed, has more than %d values", maxNodes)
		}
		return
	}
	line := n.Line
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if _, ok := d.lines[field]; !ok {
		d.lines[field] = line
	}
	switch v.Interface().(type) {
	case time.Duration:
		scalar(d, n, line, v, field, "a duration such as 500ms, 10s or 24h", positive)
		return
	case time.Time:
		scalar(d, n, line, v, field, "a time such as 2026-12-31T00:00:00Z", moment)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), field)
	case reflect.Struct:
		d.structure(n, line, v, field)
	case reflect.Map:
		d.mapping(n, line, v, field)
	case reflect.Slice:
		d.sequence(n, line, v, field)
	case reflect.String:
		scalar(d, n, line, v, field, "a text", func(text string) (string, error) { return text, nil })
	case reflect.Bool:
		scalar(d, n, line, v, field, "true or false", truth)
	case reflect.Uint64:
		scalar(d, n, line, v, field, "a whole number, 0 … 18446744073709551615", func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) })
	default:
		panic("plans: a field of kind " + v.Kind().String()) // of our own types
	}
}

// scalar reads a node that stands for one value.
func scalar[T any](d *decoder, n *yaml.Node, line int, v reflect.Value, field, want string, parse func(string) (T, error)) {
	if n.Kind != yaml.ScalarNode {
		d.add(line, field, "it is %s: want %s", kindOf(n), want)
		return
	}
	if n.Tag == "!!null" {
		d.add(line, field, "it has no value: want %s", want)
		return
	}
	got, err := parse(n.Value)
	if err != nil {
		d.add(line, field, "%s: want %s", shown(n.Value), want)
		return
	}
	v.Set(reflect.ValueOf(got).Convert(v.Type()))
}

func positive(text string) (time.Duration, error) {
	got, err := time.ParseDuration(text)
	if err == nil && got <= 0 {
		err = errors.New("not positive")
	}
	return got, err
}

func moment(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	return time.Parse(time.RFC3339, text)
}

func truth(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("neither")
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return shown(n.Value)
	}
}

// members calls f for each member of a mapping.
func (d *decoder) members(n *yaml.Node, line int, field string, f func(key, value *yaml.Node, path string)) {
	if n.Kind != yaml.MappingNode {
		d.add(line, field, "it is %s: want a mapping", kindOf(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		path := below(field, key.Value)
		first, twice := seen[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			d.add(key.Line, field, "a name is %s: want a text", kindOf(key))
		case key.Tag == "!!merge":
			d.add(key.Line, path, "merge keys are not read: name the members")
		case twice:
			d.add(key.Line, path, "it is given twice, in line %d too", first)
		default:
			seen[key.Value] = key.Line
			f(key, value, path)
		}
	}
}

// below is the path of a member.
func below(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// structure reads a mapping whose names are those of a type.
func (d *decoder) structure(n *yaml.Node, line int, v reflect.Value, field string) {
	known := fieldsOf(v.Type())
	seen, strange := map[string]bool{}, false
	d.members(n, line, field, func(key, value *yaml.Node, path string) {
		at := slices.IndexFunc(known, func(f fieldOf) bool { return f.name == key.Value })
		if at < 0 {
			d.add(key.Line, path, "it is not known: want %s", namesOf(known))
			strange = true // and what is missing is perhaps what was meant
			return
		}
		seen[key.Value] = true
		d.value(value, v.Field(at), path)
		if values := known[at].values; values != nil && value.Kind == yaml.ScalarNode && !slices.Contains(values, value.Value) {
			d.add(value.Line, path, "%s: want %s", shown(value.Value), strings.Join(values, ", "))
		}
	})
	for _, f := range known {
		if f.required && !seen[f.name] && !strange && n.Kind == yaml.MappingNode {
			d.add(line, below(field, f.name), "it is missing: %s", f.doc)
		}
	}
}

// mapping reads a mapping whose names are the file's own.
func (d *decoder) mapping(n *yaml.Node, line int, v reflect.Value, field string) {
	v.Set(reflect.MakeMap(v.Type()))
	d.members(n, line, field, func(key, value *yaml.Node, path string) {
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(value, element, path)
		v.SetMapIndex(reflect.ValueOf(key.Value), element)
	})
}

// sequence reads a list.
func (d *decoder) sequence(n *yaml.Node, line int, v reflect.Value, field string) {
	if n.Kind != yaml.SequenceNode {
		d.add(line, field, "it is %s: want a list", kindOf(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, element := range n.Content {
		d.value(element, v.Index(i), fmt.Sprintf("%s[%d]", field, i))
	}
}

// A fieldOf is one field of a type of this package.
type fieldOf struct {
	name, doc string
	required  bool
	values    []string // all that it may be; nil: anything
}

// fieldsOf returns the fields of a type, in its order.
func fieldsOf(t reflect.Type) []fieldOf {
	fields := make([]fieldOf, t.NumField())
	for i := range fields {
		tag := t.Field(i).Tag
		name, option, _ := strings.Cut(tag.Get("yaml"), ",")
		fields[i] = fieldOf{name: name, doc: tag.Get("doc"), required: option == "required"}
		if values := tag.Get("enum"); values != "" {
			fields[i].values = strings.Split(values, ",")
		}
	}
	return fields
}

func namesOf(fields []fieldOf) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}
