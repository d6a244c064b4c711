#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "config/load.h"
#include "config/settings/settings.h"
#include "config/yaml/document.h"

namespace pando::config {

/// Problems found so far, shown in the order of lines.
class Problems {
 public:
  explicit Problems(std::string main_file) : main_file_(std::move(main_file)) {}
  void error(const std::string& file, int line, std::string_view path, std::string_view reason);
  void warning(const std::string& file, int line, std::string_view path, std::string_view reason);
  /// True at kMaxProblems: further problems would not help the user.
  [[nodiscard]] bool full() const noexcept { return errors_.size() >= kMaxProblems; }
  [[nodiscard]] std::size_t error_count() const noexcept { return errors_.size(); }
  /// Moves everything into `result`.
  void report(LoadResult& result);

 private:
  struct Problem {
    std::string file;
    int line;
    std::string text;
  };
  [[nodiscard]] std::vector<std::string> to_lines(std::vector<Problem>& problems) const;
  std::string main_file_;
  std::vector<Problem> errors_;
  std::vector<Problem> warnings_;
};

/// A line of one file of the configuration.
struct Place {
  std::string file;
  int line = 0;
};

/// A zone list that was found: open, or already in memory when very many lists exist.
struct UnreadList {
  std::string file;
  std::string key;  ///< path and place of the key that names the list, for messages
  Place place{};
  Fd fd;
  std::string text{};  ///< content when `fd` is not open
  bool added = false;  ///< the list of added zones (config/added_zones.h)
};

/// A file that the configuration includes. Its lines have the numbers after `lines_before` in the
/// joined document.
struct IncludedFile {
  std::string path;
  int lines_before = 0;
  bool open_to_others = false;  ///< other users may read or write it
  bool has_secrets = false;
};

/// State of one loading.
struct Context {
  std::string file;    ///< name for messages
  std::string folder;  ///< absolute; relative paths start here
  LoadOptions options;
  Settings settings;
  Problems problems;
  std::map<std::string, std::uint32_t, std::less<>> templates;  ///< name → zone options
  std::uint32_t default_options = 0;                            ///< of zones without a template
  std::vector<UnreadList> unread{};                             ///< filled with options.lists_later
  std::uint64_t fingerprint = 0;                                ///< LoadResult::fingerprint
  bool has_secrets = false;                                     ///< the first file has secrets
  SourceFiles sources{};                                        ///< LoadResult::sources
  bool added_list_failed = false;                               ///< LoadResult::added_list_failed
  std::vector<IncludedFile> included{};                         ///< in the order of their lines

  /// The file that has this line of the joined document, and its number there.
  [[nodiscard]] Place place_of(int line) const;
  void error(int line, std::string_view path, std::string_view reason) {
    const Place place = place_of(line);
    problems.error(place.file, place.line, path, reason);
  }
  /// The text with this line has secrets.
  void note_secret(int line);
};

/// Lists that wait for read_lists(), and the parts of the configuration to which they refer.
struct UnreadLists {
  std::string file;
  std::string folder;
  std::vector<UnreadList> lists;
  std::map<std::string, std::uint32_t, std::less<>> templates;
  std::uint32_t default_options = 0;
};

/// One node of the document together with its key path and line for messages. The key path is built
/// on demand from the parents, which outlive their children.
class Value {
 public:
  /// A value without a parent. `name`: its path, which may be empty.
  Value(Context& context, YamlNode node, std::string_view name, int line) noexcept
      : context_(&context), node_(node), key_(name), line_(line) {}
  /// A value of a mapping; `line` is that of its key.
  Value(const Value& mapping, YamlNode node, std::string_view key, int line) noexcept
      : context_(mapping.context_), node_(node), outer_(&mapping), key_(key), line_(line) {}
  /// An element of a list.
  Value(const Value& list, std::size_t index) noexcept
      : context_(list.context_), node_(list.node_.element(index)), outer_(&list), index_(index),
        line_(line_of(node_, list.line_)) {}
  Value(const Value&& mapping, YamlNode node, std::string_view key, int line) = delete;
  Value(const Value&& list, std::size_t index) = delete;

  [[nodiscard]] Context& context() const noexcept { return *context_; }
  [[nodiscard]] std::string path() const;
  /// Path of a value of this mapping.
  [[nodiscard]] std::string path_of(std::string_view key) const;
  /// Whether the path is empty.
  [[nodiscard]] bool is_root() const noexcept { return outer_ == nullptr && key_.empty(); }
  [[nodiscard]] int line() const noexcept { return line_; }
  [[nodiscard]] YamlNode node() const noexcept { return node_; }
  [[nodiscard]] bool is_null() const noexcept { return node_.is_null(); }

  void fail(std::string_view reason) const;
  void warn(std::string_view reason) const;
  /// Stores the result of a parse function, or reports its error. True when stored.
  template <class T, class U>
  bool assign(Result<T> parsed, U& out) const {
    if (parsed)
      out = std::move(*parsed);
    else
      fail(parsed.error().text);
    return parsed.has_value();
  }

  /// Text of a scalar; any other node is reported and gives no value. Valid as long as the
  /// document.
  [[nodiscard]] std::optional<std::string_view> scalar() const;
  /// Calls `visit` for each element of a list; any other node is reported.
  template <class Visit>
  void for_each(const Visit& visit) const {
    if (!is_list()) return;
    for (std::size_t i = 0; i < node_.size() && !context_->problems.full(); ++i)
      visit(Value(*this, i));
  }
  /// True for a list, or for a mapping; any other node is reported.
  [[nodiscard]] bool is_list() const;
  [[nodiscard]] bool is_mapping() const;

  /// The line of a node; `otherwise` if it has none.
  [[nodiscard]] static int line_of(YamlNode node, int otherwise) noexcept {
    return node.line() > 0 ? node.line() : otherwise;
  }

 private:
  static constexpr std::size_t kNoIndex = static_cast<std::size_t>(-1);
  [[nodiscard]] bool plain_tag() const;
  Context* context_;
  YamlNode node_;
  const Value* outer_ = nullptr;  // null: in no other value
  std::string_view key_{};        // in a mapping; or the root's path
  std::size_t index_ = kNoIndex;  // in a list
  int line_;
};

/// The keys of a mapping, which outlives this object. Duplicates, which yaml-cpp accepts silently,
/// are reported immediately. finish() reports keys that were never taken as unknown.
class Members {
 public:
  explicit Members(const Value& mapping);
  explicit Members(const Value&& mapping) = delete;
  /// The value of `name`, if given. `name` lasts as long as the object.
  [[nodiscard]] std::optional<Value> take(std::string_view name);
  /// An error for each key that was not taken, with the known one that is nearest.
  void finish();

 private:
  struct Member {
    std::string_view name;
    YamlNode node;
    int line;
    bool taken;
  };
  void add(YamlNode key, YamlNode node);
  const Value& mapping_;
  std::vector<Member> members_;
  std::vector<std::string_view> known_;  // names that were asked for
};

}  // namespace pando::config
