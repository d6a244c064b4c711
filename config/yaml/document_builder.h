#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "config/yaml/document.h"

namespace pando::config {

/// Where a node begins in its text.
struct YamlPlace {
  int line = 0;    ///< from 1; 0: unknown
  int column = 0;  ///< from 0
};

/// Makes the nodes of a document, each list and mapping before what is in it. A node that is
/// complete waits for the end of the list or mapping around it.
class DocumentBuilder {
 public:
  explicit DocumentBuilder(YamlDocument& document) noexcept : document_(document) {}

  /// Each returns the node's number.
  std::uint32_t add_null(YamlPlace place) { return add(place, YamlNode::Kind::kNull); }
  std::uint32_t add_scalar(YamlPlace place, std::string_view text);
  std::uint32_t open(YamlPlace place, YamlNode::Kind kind);
  void close();
  /// The node comes once more, or what was taken comes now.
  void add_again(std::uint32_t node) { waiting_.push_back(node); }
  /// The last complete node waits no more.
  std::uint32_t take() noexcept;
  /// The last node has a tag.
  void set_tag(std::string_view tag);
  /// The document is complete.
  void finish() noexcept { document_.root_ = waiting_.front(); }

  /// All that was added, to be taken back.
  struct State {
    std::size_t nodes, children, text, waiting, open;
  };
  [[nodiscard]] State state() const noexcept;
  void restore(const State& state);

 private:
  /// A list or mapping that continues; the last ones of waiting_ are in it.
  struct Open {
    std::uint32_t node;
    std::size_t first;
  };
  std::uint32_t add(YamlPlace place, YamlNode::Kind kind);

  YamlDocument& document_;
  std::vector<std::uint32_t> waiting_;
  std::vector<Open> open_;
};

}  // namespace pando::config
