#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/value.h"
#include "config/yaml/document.h"

/// `include`: a configuration in several files (docs/reference/configuration.md).
namespace pando::config {

/// The document of one file's text. Nothing, and a reported error with this file's name, if it is
/// not YAML.
std::optional<YamlDocument> parse_file(Context& context, const std::string& file,
                                       std::string_view text);

/// Reads all files that `document`, made of the first file's `text`, includes, directly or by
/// another included file, and joins them to one document. False: a file could not be read as one of a
/// configuration. That is reported, and the document has the others.
bool read_includes(Context& context, YamlDocument& document, std::string_view text);

/// Warns of included files with secrets that other users can read.
void warn_of_open_includes(Context& context);

}  // namespace pando::config
