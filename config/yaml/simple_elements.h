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

/// A text in which `~` stands for each element that was read. All that is left has its line and
/// column.
struct TextWithoutElements {
  std::string text;
  std::vector<SimpleElement> elements;  ///< in the order of the text
};

/// Reads elements of one-line scalars without escapes, of flow collections in one line, and of
/// block collections of these. Elements in any other form stay in the text, also wrong ones.
///
/// Lines are looked at without what is before them. What looks like an element may be part of a
/// quoted or block scalar: then the parser finds no null in the element's place.
[[nodiscard]] TextWithoutElements read_simple_elements(std::string_view text,
                                                       DocumentBuilder& builder);

}  // namespace pando::config
