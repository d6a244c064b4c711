#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// A YAML text as compact nodes. They are made from the events of yaml-cpp's parser: its own tree
/// takes some 500 bytes and several heap objects for each value.
namespace pando::config {

class DocumentBuilder;
class JoinedDocuments;
class YamlDocument;
struct SimpleElement;

/// A value of a document. Copies are cheap, and valid as long as the document.
class YamlNode {
 public:
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMapping };

  YamlNode() = default;  ///< null, at no line
  [[nodiscard]] Kind kind() const noexcept;
  [[nodiscard]] bool is_null() const noexcept { return kind() == Kind::kNull; }
  [[nodiscard]] bool is_scalar() const noexcept { return kind() == Kind::kScalar; }
  [[nodiscard]] bool is_list() const noexcept { return kind() == Kind::kList; }
  [[nodiscard]] bool is_mapping() const noexcept { return kind() == Kind::kMapping; }

  /// Of a scalar, without quotes and escapes; empty for other kinds.
  [[nodiscard]] std::string_view text() const noexcept;
  /// A tag that changes the meaning; empty for those of YAML's standard types.
  [[nodiscard]] std::string_view tag() const noexcept;
  /// Where the node begins, from 1; that of the anchored node for an alias. 0: unknown.
  [[nodiscard]] int line() const noexcept;
  /// Characters before the node in its line.
  [[nodiscard]] std::size_t column() const noexcept;

  /// Elements of a list, or pairs of a mapping; 0 for other kinds.
  [[nodiscard]] std::size_t size() const noexcept;
  /// An element of a list. An alias gives the anchored node itself, which may be the list.
  [[nodiscard]] YamlNode element(std::size_t index) const noexcept;
  /// The pairs of a mapping as written: a key may be of any kind, and may come twice.
  [[nodiscard]] YamlNode key(std::size_t index) const noexcept;
  [[nodiscard]] YamlNode value(std::size_t index) const noexcept;
  /// The first value of a mapping with this key; nothing for other kinds.
  [[nodiscard]] std::optional<YamlNode> find(std::string_view key) const noexcept;

 private:
  friend class YamlDocument;
  friend class JoinedDocuments;
  YamlNode(const YamlDocument& document, std::uint32_t number) noexcept
      : document_(&document), number_(number) {}
  [[nodiscard]] YamlNode child(std::size_t index) const noexcept;
  const YamlDocument* document_ = nullptr;
  std::uint32_t number_ = 0;
};

/// Why a text is not YAML.
struct YamlError {
  int line = 0;  ///< from 1; 0: unknown
  std::string text;
};

/// All nodes in three arrays. Aliases refer to the anchored node, so that a text cannot grow by
/// them.
class YamlDocument {
 public:
  /// The parser ignores text after the first document, or looks for it.
  enum class Behind : std::uint8_t {
    kIgnore,  ///< it is not read
    kFind,    ///< it is read, and has to be YAML; see behind_line()
  };

  /// Simple elements of lists are read directly (config/yaml/simple_elements.h) or by the parser.
  /// The document is the same.
  enum class Elements : std::uint8_t { kDirectly, kByParser };

  /// Reads the first document of a text.
  static Result<YamlDocument, YamlError> parse(std::string_view text, Behind behind,
                                               Elements elements = Elements::kDirectly);

  /// Null if the text has no document.
  [[nodiscard]] YamlNode root() const noexcept;
  /// The line of what follows the first document, from 1; 0: nothing follows, or was looked for.
  [[nodiscard]] int behind_line() const noexcept { return behind_line_; }

 private:
  friend class YamlNode;
  friend class DocumentBuilder;
  friend class JoinedDocuments;
  class Events;
  struct Stored {
    std::uint32_t line;
    std::uint32_t column;
    std::uint32_t begin;  // in text_, or in children_
    std::uint32_t size;   // bytes, elements or pairs
    YamlNode::Kind kind;
    bool has_tag;
  };
  struct Tag {
    std::uint32_t node;
    std::string text;
  };
  std::optional<YamlError> read(std::string_view text, Behind behind, DocumentBuilder& builder,
                                const std::vector<SimpleElement>& elements);

  std::vector<Stored> nodes_;
  std::vector<std::uint32_t> children_;  // numbers of elements, or of keys and values in turn
  std::string text_;                     // of all scalars
  std::vector<Tag> tags_;                // ascending by node
  std::uint32_t root_ = 0;
  int behind_line_ = 0;
};

}  // namespace pando::config
