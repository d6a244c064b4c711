#include "config/yaml/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <streambuf>
#include <utility>

#include "config/yaml/document_builder.h"
#include "config/yaml/simple_elements.h"

namespace pando::config {

namespace {

constexpr std::string_view kStandardTag = "tag:yaml.org,2002:";

/// Limit of a text. A character makes fewer than four nodes, so their numbers fit into 32 bits.
constexpr std::size_t kMaxDocumentBytes = std::size_t{1} << 30;

/// Characters of a text for a stream that does not copy them.
class TextBuffer final : public std::streambuf {
 public:
  explicit TextBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // NOLINT: a stream for reading writes nothing
    setg(begin, begin, begin + text.size());
  }
};

/// None, "not plain", or one of the standard types: the reader of a value decides on its type.
bool means_nothing(const std::string& tag) {
  return tag.empty() || tag == "?" || tag == "!" || tag.starts_with(kStandardTag);
}

}  // namespace

/// Passes the parser's events to a builder. A collection in the place of an element that was read
/// before is that element.
class YamlDocument::Events final : public YAML::EventHandler {
 public:
  Events(DocumentBuilder& builder, const std::vector<SimpleElement>& elements)
      : builder_(builder), elements_(elements) {}

  void OnDocumentStart(const YAML::Mark& mark) override { line_ = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (depth_ == 0) anchored(anchor, builder_.add_null(place_of(mark)));
  }
  void OnAlias(const YAML::Mark&, YAML::anchor_t anchor) override {
    if (depth_ == 0) builder_.add_again(anchors_[anchor]);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (depth_ > 0) return;
    anchored(anchor, builder_.add_scalar(place_of(mark), value));
    tagged(tag);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, YamlNode::Kind::kList, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, YamlNode::Kind::kMapping, tag, anchor);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] bool used_all() const noexcept { return used_ == elements_.size(); }
  /// Where the document begins, from 1.
  [[nodiscard]] int line() const noexcept { return line_; }

 private:
  static YamlPlace place_of(const YAML::Mark& mark) { return {mark.line + 1, mark.column}; }
  static bool is_at(YamlPlace place, const YAML::Mark& mark) {
    return place.line == mark.line + 1 && place.column == mark.column;
  }

  void open(const YAML::Mark& mark, YamlNode::Kind kind, const std::string& tag,
            YAML::anchor_t anchor) {
    if (depth_ > 0) {
      ++depth_;
    } else if (used_ < elements_.size() && is_at(elements_[used_].place, mark)) {
      builder_.add_again(elements_[used_++].node);
      depth_ = 1;
    } else {
      anchored(anchor, builder_.open(place_of(mark), kind));
      tagged(tag);
    }
  }

  void close() { depth_ > 0 ? static_cast<void>(--depth_) : builder_.close(); }

  void anchored(YAML::anchor_t anchor, std::uint32_t node) {
    if (anchor == 0) return;
    anchors_.resize(std::max<std::size_t>(anchors_.size(), anchor + 1));
    anchors_[anchor] = node;
  }

  void tagged(const std::string& tag) {
    if (!means_nothing(tag)) builder_.set_tag(tag);
  }

  DocumentBuilder& builder_;
  const std::vector<SimpleElement>& elements_;
  std::size_t used_ = 0;
  int line_ = 0;
  int depth_ = 0;  // of collections that stand for an element and are open
  std::vector<std::uint32_t> anchors_;  // nodes by the parser's numbers of anchors
};

/// Nothing is returned without an error.
std::optional<YamlError> YamlDocument::read(std::string_view text, Behind behind,
                                            DocumentBuilder& builder,
                                            const std::vector<SimpleElement>& elements) {
  try {
    TextBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    Events events(builder, elements);
    const bool has_document = parser.HandleNextDocument(events);
    if (!events.used_all()) return YamlError{0, "an element is part of something else"};
    if (!has_document) return std::nullopt;
    builder.finish();
    // YAML::LoadAll must not be used: it does not advance over a token that can begin no document
    // (a lone comma). YAML::LoadAll would then return empty documents until memory is exhausted.
    if (behind == Behind::kIgnore) return std::nullopt;
    YamlDocument ignored;
    DocumentBuilder ignoring(ignored);
    const std::vector<SimpleElement> none;
    if (Events next(ignoring, none); parser.HandleNextDocument(next)) behind_line_ = next.line();
  } catch (const YAML::Exception& error) {
    return YamlError{error.mark.line + 1, error.msg};
  }
  return std::nullopt;
}

Result<YamlDocument, YamlError> YamlDocument::parse(std::string_view text, Behind behind,
                                                    Elements elements) {
  if (text.size() > kMaxDocumentBytes)
    return tl::unexpected<YamlError>(YamlError{0, "the text has more than 1 GiB"});
  if (elements == Elements::kDirectly) {
    YamlDocument document;
    DocumentBuilder builder(document);
    const TextWithoutElements rest = read_simple_elements(text, builder);
    if (!rest.elements.empty() && !document.read(rest.text, behind, builder, rest.elements))
      return document;
  }
  // Also after an error, which has to be that of the text itself.
  YamlDocument document;
  DocumentBuilder builder(document);
  if (auto error = document.read(text, behind, builder, {}))
    return tl::unexpected<YamlError>(std::move(*error));
  return document;
}

YamlNode YamlDocument::root() const noexcept {
  return nodes_.empty() ? YamlNode() : YamlNode(*this, root_);
}

YamlNode::Kind YamlNode::kind() const noexcept {
  return document_ == nullptr ? Kind::kNull : document_->nodes_[number_].kind;
}

std::string_view YamlNode::text() const noexcept {
  if (!is_scalar()) return {};
  const auto& node = document_->nodes_[number_];
  return std::string_view(document_->text_).substr(node.begin, node.size);
}

std::string_view YamlNode::tag() const noexcept {
  if (document_ == nullptr || !document_->nodes_[number_].has_tag) return {};
  return std::ranges::lower_bound(document_->tags_, number_, {}, &YamlDocument::Tag::node)->text;
}

int YamlNode::line() const noexcept {
  return document_ == nullptr ? 0 : static_cast<int>(document_->nodes_[number_].line);
}

std::size_t YamlNode::column() const noexcept {
  return document_ == nullptr ? 0 : document_->nodes_[number_].column;
}

std::size_t YamlNode::size() const noexcept {
  return is_list() || is_mapping() ? document_->nodes_[number_].size : 0;
}

YamlNode YamlNode::child(std::size_t index) const noexcept {
  return {*document_, document_->children_[document_->nodes_[number_].begin + index]};
}

YamlNode YamlNode::element(std::size_t index) const noexcept { return child(index); }
YamlNode YamlNode::key(std::size_t index) const noexcept { return child(2 * index); }
YamlNode YamlNode::value(std::size_t index) const noexcept { return child(2 * index + 1); }

std::optional<YamlNode> YamlNode::find(std::string_view name) const noexcept {
  if (!is_mapping()) return std::nullopt;
  for (std::size_t i = 0; i < size(); ++i)
    if (key(i).is_scalar() && key(i).text() == name) return value(i);
  return std::nullopt;
}

}  // namespace pando::config
