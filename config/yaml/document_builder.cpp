#include "config/yaml/document_builder.h"

namespace pando::config {

std::uint32_t DocumentBuilder::add(YamlPlace place, YamlNode::Kind kind) {
  const auto number = static_cast<std::uint32_t>(document_.nodes_.size());
  document_.nodes_.push_back({static_cast<std::uint32_t>(place.line),
                              static_cast<std::uint32_t>(place.column), 0, 0, kind, false});
  waiting_.push_back(number);
  return number;
}

std::uint32_t DocumentBuilder::add_scalar(YamlPlace place, std::string_view text) {
  const std::uint32_t number = add(place, YamlNode::Kind::kScalar);
  document_.nodes_[number].begin = static_cast<std::uint32_t>(document_.text_.size());
  document_.nodes_[number].size = static_cast<std::uint32_t>(text.size());
  document_.text_ += text;
  return number;
}

std::uint32_t DocumentBuilder::open(YamlPlace place, YamlNode::Kind kind) {
  const std::uint32_t number = add(place, kind);
  open_.push_back({number, waiting_.size()});
  return number;
}

void DocumentBuilder::close() {
  const Open ended = open_.back();
  open_.pop_back();
  const auto first = waiting_.begin() + static_cast<std::ptrdiff_t>(ended.first);
  YamlDocument::Stored& node = document_.nodes_[ended.node];
  const std::uint32_t nodes_each = node.kind == YamlNode::Kind::kMapping ? 2 : 1;
  node.begin = static_cast<std::uint32_t>(document_.children_.size());
  node.size = static_cast<std::uint32_t>(waiting_.end() - first) / nodes_each;
  document_.children_.insert(document_.children_.end(), first, waiting_.end());
  waiting_.erase(first, waiting_.end());
}

std::uint32_t DocumentBuilder::take() noexcept {
  const std::uint32_t number = waiting_.back();
  waiting_.pop_back();
  return number;
}

void DocumentBuilder::set_tag(std::string_view tag) {
  document_.nodes_.back().has_tag = true;
  document_.tags_.push_back(
      {static_cast<std::uint32_t>(document_.nodes_.size() - 1), std::string(tag)});
}

DocumentBuilder::State DocumentBuilder::state() const noexcept {
  return {document_.nodes_.size(), document_.children_.size(), document_.text_.size(),
          waiting_.size(), open_.size()};
}

void DocumentBuilder::restore(const State& state) {
  document_.nodes_.resize(state.nodes);
  document_.children_.resize(state.children);
  document_.text_.resize(state.text);
  waiting_.resize(state.waiting);
  open_.resize(state.open);
}

}  // namespace pando::config
