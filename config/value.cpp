#include "config/value.h"

#include <algorithm>
#include <tuple>

#include "base/words.h"

namespace pando::config {

namespace {

/// Limit of keys in a mapping: no section has as many, and the search for duplicates takes
/// quadratic time.
constexpr std::size_t kMaxMembers = 256;

/// Keys that a zone may have: their list mostly needs no second place.
constexpr std::size_t kUsualKeys = 20;

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
  const std::string_view colon = path.empty() ? "" : ": ";
  warnings_.push_back({file, line, fmt::format("{}{}{}", path, colon, reason)});
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

Place Context::place_of(int line) const {
  const auto behind = std::ranges::lower_bound(included, line, {}, &IncludedFile::lines_before);
  if (behind == included.begin()) return {file, line};
  const IncludedFile& found = *std::prev(behind);
  return {found.path, line - found.lines_before};
}

void Context::note_secret(int line) {
  const auto behind = std::ranges::lower_bound(included, line, {}, &IncludedFile::lines_before);
  (behind == included.begin() ? has_secrets : std::prev(behind)->has_secrets) = true;
}

std::string Value::path() const {
  if (outer_ == nullptr) return std::string(key_);
  return index_ == kNoIndex ? outer_->path_of(key_)
                            : fmt::format("{}[{}]", outer_->path(), index_);
}

std::string Value::path_of(std::string_view key) const {
  return is_root() ? std::string(key) : fmt::format("{}.{}", path(), key);
}

void Value::fail(std::string_view reason) const {
  context_->error(line_, path(), reason);
}

void Value::warn(std::string_view reason) const {
  const Place place = context_->place_of(line_);
  context_->problems.warning(place.file, place.line, path(), reason);
}

bool Value::plain_tag() const {
  if (node_.tag().empty()) return true;
  fail(fmt::format("tag '{}' means nothing here", node_.tag()));
  return false;
}

std::optional<std::string_view> Value::scalar() const {
  if (!plain_tag()) return std::nullopt;
  if (node_.is_scalar()) return node_.text();
  fail(node_.is_null() ? "has no value" : "needs a single value");
  return std::nullopt;
}

bool Value::is_list() const {
  if (!plain_tag()) return false;
  if (!node_.is_list()) fail("needs a list");
  return node_.is_list();
}

bool Value::is_mapping() const {
  if (!plain_tag()) return false;
  if (!node_.is_mapping()) fail("needs a mapping of keys to values");
  return node_.is_mapping();
}

Members::Members(const Value& mapping) : mapping_(mapping) {
  if (!mapping.is_mapping()) return;
  const YamlNode node = mapping.node();
  if (node.size() > kMaxMembers) {
    mapping.fail("has too many keys");
    return;
  }
  members_.reserve(node.size());
  known_.reserve(kUsualKeys);
  for (std::size_t i = 0; i < node.size(); ++i) add(node.key(i), node.value(i));
}

void Members::add(YamlNode key, YamlNode node) {
  Context& context = mapping_.context();
  const int line = Value::line_of(key, mapping_.line());
  if (!key.is_scalar())
    return context.error(line, mapping_.path(), "a key is not plain text");
  const std::string_view name = key.text();
  const auto first = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& member) { return member.name == name; });
  if (first == members_.end()) return members_.push_back({name, node, line, false});
  const Place before = context.place_of(first->line);
  const bool same_file = before.file == context.place_of(line).file;
  context.error(line, mapping_.path_of(name),
                same_file ? fmt::format("given twice, first in line {}", before.line)
                          : fmt::format("given twice, first in {}:{}", before.file, before.line));
}

std::optional<Value> Members::take(std::string_view name) {
  known_.push_back(name);
  for (Member& member : members_) {
    if (member.name != name) continue;
    member.taken = true;
    return Value(mapping_, member.node, member.name, member.line);
  }
  return std::nullopt;
}

void Members::finish() {
  Context& context = mapping_.context();
  for (const Member& member : members_) {
    if (member.taken) continue;
    const std::string_view meant = nearest(member.name, known_);
    context.error(
        member.line, mapping_.path_of(member.name),
        meant.empty() ? "unknown key" : fmt::format("unknown key; did you mean '{}'?", meant));
  }
}

}  // namespace pando::config
