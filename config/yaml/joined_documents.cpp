#include "config/yaml/joined_documents.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace pando::config {

namespace {

/// Mappings in each other that are merged: no section has more. An alias may put a mapping into
/// itself, so there has to be an end.
constexpr int kMaxDepth = 4;

/// Limit of all texts, and of nodes: their numbers and places have 32 bits.
constexpr std::size_t kMaxTotal = std::size_t{1} << 30;

}  // namespace

JoinedDocuments::JoinedDocuments(YamlDocument& document) : document_(document) {
  if (!document.nodes_.empty()) roots_.push_back({0, document.root_, 0});
}

bool JoinedDocuments::fits(const YamlDocument& other) const noexcept {
  return document_.text_.size() + other.text_.size() <= kMaxTotal &&
         document_.nodes_.size() + other.nodes_.size() <= kMaxTotal &&
         document_.children_.size() + other.children_.size() <= kMaxTotal;
}

YamlNode JoinedDocuments::add(const YamlDocument& other, int lines_before) {
  if (other.nodes_.empty()) return {};
  const auto first = static_cast<std::uint32_t>(document_.nodes_.size());
  const auto text = static_cast<std::uint32_t>(document_.text_.size());
  const auto children = static_cast<std::uint32_t>(document_.children_.size());
  for (YamlDocument::Stored stored : other.nodes_) {
    if (stored.line != 0) stored.line += static_cast<std::uint32_t>(lines_before);
    if (stored.kind == YamlNode::Kind::kScalar) stored.begin += text;
    if (stored.kind == YamlNode::Kind::kList || stored.kind == YamlNode::Kind::kMapping)
      stored.begin += children;
    document_.nodes_.push_back(stored);
  }
  for (const std::uint32_t child : other.children_) document_.children_.push_back(child + first);
  for (const YamlDocument::Tag& tag : other.tags_)
    document_.tags_.push_back({tag.node + first, tag.text});
  document_.text_ += other.text_;
  const std::uint32_t root = other.root_ + first;
  roots_.push_back({0, root, roots_.size()});
  return node(root);
}

void JoinedDocuments::merge(std::string_view left_out) {
  std::erase_if(roots_, [this](const Pair& root) { return node(root.value).is_null(); });
  if (roots_.empty()) return;
  document_.root_ = merge_mappings(roots_, 0, left_out);
}

YamlNode JoinedDocuments::node(std::uint32_t number) const noexcept {
  return {document_, number};
}

std::vector<JoinedDocuments::Pair> JoinedDocuments::pairs_of(
    const std::vector<Pair>& mappings) const {
  std::vector<Pair> pairs;
  for (const Pair& mapping : mappings) {
    const YamlDocument::Stored& stored = document_.nodes_[mapping.value];
    for (std::size_t i = 0; i < stored.size; ++i)
      pairs.push_back({document_.children_[stored.begin + 2 * i],
                       document_.children_[stored.begin + 2 * i + 1], mapping.file});
  }
  return pairs;
}

std::uint32_t JoinedDocuments::merge_mappings(const std::vector<Pair>& mappings, int depth,
                                              std::string_view left_out) {
  std::vector<std::vector<Pair>> groups;  // the values of one key each
  std::unordered_map<std::string_view, std::size_t> places;
  for (const Pair& pair : pairs_of(mappings)) {
    const YamlNode key = node(pair.key);
    if (depth == 0 && pair.file != roots_.front().file && key.text() == left_out) continue;
    const auto [place, is_new] = key.is_scalar()
                                     ? places.try_emplace(key.text(), groups.size())
                                     : std::pair(places.end(), true);
    if (is_new)
      groups.push_back({pair});
    else
      groups[place->second].push_back(pair);
  }
  // No text is added from here on, so the keys above stay valid.
  std::vector<std::uint32_t> children;
  for (std::vector<Pair>& group : groups) merge_values(std::move(group), depth, children);
  return add_node(YamlNode::Kind::kMapping, mappings.front().value, children);
}

/// Appends the pairs that `values`, those of one key, become.
void JoinedDocuments::merge_values(std::vector<Pair> values, int depth,
                                   std::vector<std::uint32_t>& children) {
  if (depth == 0) drop_lone_nulls(values);
  const std::uint32_t key = values.front().key;
  if (depth < kMaxDepth && may_join(values, YamlNode::Kind::kMapping)) {
    const std::uint32_t merged = merge_mappings(values, depth + 1, {});
    children.insert(children.end(), {key, merged});
  } else if (depth == 0 && may_join(values, YamlNode::Kind::kList)) {
    const std::uint32_t joined = join_lists(values);
    children.insert(children.end(), {key, joined});
  } else {
    for (const Pair& value : values) children.insert(children.end(), {value.key, value.value});
  }
}

/// Drops values that are null and the only ones of their file, but leaves one value.
void JoinedDocuments::drop_lone_nulls(std::vector<Pair>& values) const {
  for (std::size_t i = values.size(); i-- > 0;) {
    const bool alone = (i == 0 || values[i - 1].file != values[i].file) &&
                       (i + 1 == values.size() || values[i + 1].file != values[i].file);
    if (values.size() > 1 && alone && node(values[i].value).is_null())
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// Whether these are several values of this kind, each of another file and without a tag.
bool JoinedDocuments::may_join(const std::vector<Pair>& values, YamlNode::Kind kind) const {
  if (values.size() < 2) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const YamlNode value = node(values[i].value);
    if (value.kind() != kind || !value.tag().empty()) return false;
    if (i > 0 && values[i].file == values[i - 1].file) return false;
  }
  return true;
}

std::uint32_t JoinedDocuments::join_lists(const std::vector<Pair>& lists) {
  std::vector<std::uint32_t> elements;
  for (const Pair& list : lists) {
    const YamlDocument::Stored& stored = document_.nodes_[list.value];
    const auto begin = document_.children_.begin() + stored.begin;
    elements.insert(elements.end(), begin, begin + stored.size);
  }
  return add_node(YamlNode::Kind::kList, lists.front().value, elements);
}

std::uint32_t JoinedDocuments::add_node(YamlNode::Kind kind, std::uint32_t like,
                                        const std::vector<std::uint32_t>& children) {
  const auto number = static_cast<std::uint32_t>(document_.nodes_.size());
  YamlDocument::Stored stored = document_.nodes_[like];
  stored.kind = kind;
  stored.has_tag = false;
  stored.begin = static_cast<std::uint32_t>(document_.children_.size());
  stored.size = static_cast<std::uint32_t>(children.size());
  if (kind == YamlNode::Kind::kMapping) stored.size /= 2;
  document_.children_.insert(document_.children_.end(), children.begin(), children.end());
  document_.nodes_.push_back(stored);
  return number;
}

}  // namespace pando::config
