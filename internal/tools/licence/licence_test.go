package licence

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"mit_wrapped", "Permission is hereby granted, free of\n charge, to any person obtaining a copy", "MIT"},
		{"bsd_two_clauses", "Redistribution and use in source and binary forms, with or without\nmodification, are permitted provided", "BSD-2-Clause"},
		{"bsd_comment_prefix", "# be used to endorse or promote\n# products derived from this software", "BSD-3-Clause"},
		{"apache", "Apache License\nVersion 2.0, January 2004", ""},
		{"apache_beside_mit", "Permission is hereby granted, free of charge, to any person obtaining a copy\nor the Apache License", ""},
		{"unknown", "All rights reserved.", ""},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Classify(c.text)) })
	}
}

func TestSectionOfAMixedLicenceFile(t *testing.T) {
	text := "general\n-----------\nFiles: web/*\nweb's\n-----------\nFiles: a/b/*\nFiles: c/*\nb's\n"
	require.Contains(t, Section(text, "zstd"), "general")
	require.NotContains(t, Section(text, "zstd"), "web's")
	require.Contains(t, Section(text, "web/deep"), "web's")
	require.Contains(t, Section(text, "c"), "b's")
	require.NotContains(t, Section(text, "website"), "web's")
}
