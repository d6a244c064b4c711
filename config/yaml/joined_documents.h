#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "config/yaml/document.h"

namespace pando::config {

/// Joins several documents to one, whose lines are numbered on from file to file. The nodes of the
/// document stay valid, their texts only until the next document is added.
class JoinedDocuments {
 public:
  /// `document` becomes the whole; its root is the first one.
  explicit JoinedDocuments(YamlDocument& document);

  /// Adds the nodes of `other`, with `lines_before` added to their lines. Returns its root. False
  /// in fits() before: the texts are too large together.
  YamlNode add(const YamlDocument& other, int lines_before);
  [[nodiscard]] bool fits(const YamlDocument& other) const noexcept;

  /// The document's root becomes one mapping with the pairs of all roots, which are mappings or
  /// null. Mappings of one key in several files become one; so do lists if the key is the root's. A
  /// null beside another value of the root is left out. All other pairs stay as they are, so a key
  /// may come twice; pairs of `left_out` count in the first document only.
  void merge(std::string_view left_out);

 private:
  /// A pair of a mapping, and the number of its document.
  struct Pair {
    std::uint32_t key;
    std::uint32_t value;
    std::size_t file;
  };
  [[nodiscard]] std::vector<Pair> pairs_of(const std::vector<Pair>& mappings) const;
  [[nodiscard]] YamlNode node(std::uint32_t number) const noexcept;
  [[nodiscard]] bool may_join(const std::vector<Pair>& values, YamlNode::Kind kind) const;
  std::uint32_t add_node(YamlNode::Kind kind, std::uint32_t like,
                         const std::vector<std::uint32_t>& children);
  std::uint32_t merge_mappings(const std::vector<Pair>& mappings, int depth,
                               std::string_view left_out);
  void merge_values(std::vector<Pair> values, int depth, std::vector<std::uint32_t>& children);
  void drop_lone_nulls(std::vector<Pair>& values) const;
  std::uint32_t join_lists(const std::vector<Pair>& lists);

  YamlDocument& document_;
  std::vector<Pair> roots_;
};

}  // namespace pando::config
