#include "config/value.h"

#include <algorithm>
#include <tuple>

#include "base/nearest.h"

namespace pando::config {

namespace {

constexpr std::string_view kStandardTag = "tag:yaml.org,2002:";

/// Limit of keys in a mapping: no section has as many, and the search for duplicates takes
/// quadratic time.
constexpr std::size_t kMaxMembers = 256;

int line_of(const YAML::Node& node, int otherwise) {
  const int line = node.Mark().line;
  return line >= 0 ? line + 1 : otherwise;
}

}  // namespace

void Problems::error(const std::string& file, int line, std::string_view path,
                     std::string_view reason) {
  if (full()) return;
  const std::string_view colon = path.empty() ? "" : ": ";
  errors_.push_back({file, line, fmt::format("{}{}{}", path, colon, reason)});
}

void Problems::warning(const std::string& file, int line, std::string_view path,
                       std::string_view reason) {
  if (warnings_.size() >= kMaxProblems) return;
  warnings_.push_back({file, line, fmt::format("{}: {}", path, reason)});
}

void Problems::report(LoadResult& result) {
  result.errors = to_lines(errors_);
  result.warnings = to_lines(warnings_);
}

std::vector<std::string> Problems::to_lines(std::vector<Problem>& problems) const {
  const auto place = [this](const Problem& problem) {
    return std::make_tuple(problem.file != main_file_, std::string_view(problem.file),
                           problem.line);
  };
  std::stable_sort(problems.begin(), problems.end(),
                   [&](const Problem& a, const Problem& b) { return place(a) < place(b); });
  std::vector<std::string> lines;
  for (const Problem& problem : problems)
    lines.push_back(problem.line > 0
                        ? fmt::format("{}:{}: {}", problem.file, problem.line, problem.text)
                        : fmt::format("{}: {}", problem.file, problem.text));
  return lines;
}

void Value::fail(std::string_view reason) const {
  context_->problems.error(context_->file, line_, path_, reason);
}

void Value::warn(std::string_view reason) const {
  context_->problems.warning(context_->file, line_, path_, reason);
}

/// True for a tag without meaning: none, "not plain" or one of the standard types.
bool Value::plain_tag() const {
  const std::string& tag = node_.Tag();
  if (tag.empty() || tag == "?" || tag == "!" || tag.starts_with(kStandardTag)) return true;
  fail(fmt::format("tag '{}' means nothing here", tag));
  return false;
}

std::optional<std::string> Value::scalar() const {
  if (!plain_tag()) return std::nullopt;
  if (node_.IsScalar()) return node_.Scalar();
  fail(node_.IsNull() ? "has no value" : "needs a single value");
  return std::nullopt;
}

void Value::for_each(const std::function<void(const Value&)>& visit) const {
  if (!plain_tag()) return;
  if (!node_.IsSequence()) return fail("needs a list");
  std::size_t index = 0;
  for (const auto& element : node_) {
    if (context_->problems.full()) return;
    visit(
        Value(*context_, element, fmt::format("{}[{}]", path_, index++), line_of(element, line_)));
  }
}

bool Value::is_mapping() const {
  if (!plain_tag()) return false;
  if (!node_.IsMap()) fail("needs a mapping of keys to values");
  return node_.IsMap();
}

Members::Members(const Value& mapping) : mapping_(mapping) {
  if (!mapping.is_mapping()) return;
  if (mapping.node().size() > kMaxMembers)
    mapping.fail("has too many keys");
  else
    for (const auto& member : mapping.node()) add(member.first, member.second);
}

void Members::add(const YAML::Node& key, const YAML::Node& node) {
  Context& context = mapping_.context();
  const int line = line_of(key, mapping_.line());
  if (!key.IsScalar())
    return context.problems.error(context.file, line, mapping_.path(), "a key is not plain text");
  const std::string& name = key.Scalar();
  const auto first = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& member) { return member.name == name; });
  if (first == members_.end()) return members_.push_back({name, node, line, false});
  context.problems.error(context.file, line, path_of(name),
                         fmt::format("given twice, first in line {}", first->line));
}

std::string Members::path_of(std::string_view name) const {
  if (mapping_.path().empty()) return std::string(name);
  return fmt::format("{}.{}", mapping_.path(), name);
}

std::optional<Value> Members::take(std::string_view name) {
  known_.push_back(name);
  for (Member& member : members_) {
    if (member.name != name) continue;
    member.taken = true;
    return Value(mapping_.context(), member.node, path_of(name), member.line);
  }
  return std::nullopt;
}

void Members::finish() {
  Context& context = mapping_.context();
  for (const Member& member : members_) {
    if (member.taken) continue;
    const std::string_view meant = nearest(member.name, known_);
    context.problems.error(
        context.file, member.line, path_of(member.name),
        meant.empty() ? "unknown key" : fmt::format("unknown key; did you mean '{}'?", meant));
  }
}

}  // namespace pando::config
