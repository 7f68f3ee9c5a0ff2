package plans

// This file describes the file for editors and other programs.

import (
	"encoding/json"
	"reflect"
	"time"
)

// A schema is a JSON schema, as far as a file of plans needs one.
type schema struct {
	Schema      string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        string             `json:"type"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Additional  any                `json:"additionalProperties,omitempty"` // false, or the schema of all members
	Items       *schema            `json:"items,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
}

// Schema returns the JSON schema (draft 2020-12) of a file of plans, made from the types
// that the file is read into. What a schema cannot say, such as that a limit is there, [Parse] does.
func Schema() []byte {
	s := schemaOf(reflect.TypeFor[File]())
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", "Plans of limiters"
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // of our own types
	}
	return append(text, '\n')
}

func schemaOf(t reflect.Type) *schema {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return &schema{Type: "string", Pattern: `^([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+$`}
	case reflect.TypeFor[time.Time]():
		return &schema{Type: "string", Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}(T.*)?$`}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Struct:
		s := &schema{Type: "object", Properties: map[string]*schema{}, Additional: false}
		for i, f := range fieldsOf(t) {
			member := schemaOf(t.Field(i).Type)
			member.Description, member.Enum = f.doc, f.values
			s.Properties[f.name] = member
			if f.required {
				s.Required = append(s.Required, f.name)
			}
		}
		return s
	case reflect.Map:
		return &schema{Type: "object", Additional: schemaOf(t.Elem())}
	case reflect.Slice:
		return &schema{Type: "array", Items: schemaOf(t.Elem())}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Uint64:
		return &schema{Type: "integer", Minimum: new(int)}
	default:
		return &schema{Type: "string"}
	}
}
