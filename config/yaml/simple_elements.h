#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/yaml/document_builder.h"

/// Elements of lists that need no parser, such as the zones of a large configuration:
///
///     - {name: a.example, file: a.zone, allow-query: [192.0.2.0/24]}
///     - name: b.example
///       file: "b.zone"
///
/// yaml-cpp needs some 10 µs for each of them, which is most of the time that a reload of 100,000
/// zones takes.
namespace pando::config {

/// An element that was read.
struct SimpleElement {
  YamlPlace place;
  std::uint32_t node = 0;  ///< complete, and in no list yet
};

/// A text in which `[]` stands for each flow collection that was read, and `k: []` for each block
/// mapping. All that is left has its line and column.
struct TextWithoutElements {
  std::string text;
  std::vector<SimpleElement> elements;  ///< in the order of the text
};

/// Reads elements that are flow collections in one line, or block mappings, of scalars without
/// escapes. Elements in any other form stay in the text, also wrong ones.
///
/// Each line is examined without its context. A line that looks like an element may be part of a
/// quoted or block scalar: then the parser finds no collection in the element's place. The
/// stand-ins leave yaml-cpp's scanner in the same state as the elements would. `~` does not: with
/// it the scanner rejects some texts because of a preceding line.
[[nodiscard]] TextWithoutElements read_simple_elements(std::string_view text,
                                                       DocumentBuilder& builder);

}  // namespace pando::config
