"""Sphinx's settings of the documentation site. `docs/build` copies this file beside the pages."""

project = "Troupe"
copyright = "the authors of Troupe"  # noqa: A001  Sphinx's name
html_title = "Troupe"
extensions = ["myst_parser", "sphinx_copybutton", "sphinx_design"]
myst_enable_extensions = ["colon_fence", "fieldlist", "deflist", "attrs_block"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
source_suffix = {".md": "markdown"}
suppress_warnings = ["ref.python"]  # RunConfig is of troupe.train and of troupe.tune
highlight_language = "text"
pygments_style = "friendly"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
cpp_maximum_signature_line_length = 80
add_module_names = False
toc_object_entries = False
copybutton_prompt_text = r"(?:[\w.-]+)?\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["troupe.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
