#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "config/load.h"
#include "config/settings/settings.h"

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

/// A zone list that was found: open, or already in memory when very many lists exist.
struct UnreadList {
  std::string file;
  std::string key;  ///< path and line of the key that names the list, for messages
  int line = 0;
  Fd fd;
  std::string text{};  ///< content when `fd` is not open
  bool added = false;  ///< the list of added zones (config/added_zones.h)
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
  bool has_secrets = false;                                     ///< the text itself has secrets
  SourceFiles sources{};                                        ///< LoadResult::sources
  bool added_list_failed = false;                               ///< LoadResult::added_list_failed
};

/// Lists that wait for read_lists(), and the parts of the configuration to which they refer.
struct UnreadLists {
  std::string file;
  std::string folder;
  std::vector<UnreadList> lists;
  std::map<std::string, std::uint32_t, std::less<>> templates;
  std::uint32_t default_options = 0;
};

/// One node of the document together with its key path and line for messages.
class Value {
 public:
  Value(Context& context, YAML::Node node, std::string path, int line)
      : context_(&context), node_(std::move(node)), path_(std::move(path)), line_(line) {}

  [[nodiscard]] Context& context() const noexcept { return *context_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int line() const noexcept { return line_; }
  [[nodiscard]] const YAML::Node& node() const noexcept { return node_; }
  [[nodiscard]] bool is_null() const { return node_.IsNull(); }

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

  /// Text of a scalar; any other node is reported and gives no value.
  [[nodiscard]] std::optional<std::string> scalar() const;
  /// Calls `visit` for each element of a list; any other node is reported.
  void for_each(const std::function<void(const Value&)>& visit) const;
  /// True for a mapping; any other node is reported.
  [[nodiscard]] bool is_mapping() const;

 private:
  [[nodiscard]] bool plain_tag() const;
  Context* context_;
  YAML::Node node_;
  std::string path_;
  int line_;
};

/// The keys of a mapping. Duplicates, which yaml-cpp keeps silently, are reported at once. finish()
/// reports keys that were never taken as unknown.
class Members {
 public:
  explicit Members(const Value& mapping);
  /// The value of `name`, if given. `name` lasts as long as the object.
  [[nodiscard]] std::optional<Value> take(std::string_view name);
  /// An error for each key that was not taken, with the known one that is nearest.
  void finish();

 private:
  struct Member {
    std::string name;
    YAML::Node node;
    int line;
    bool taken;
  };
  void add(const YAML::Node& key, const YAML::Node& node);
  [[nodiscard]] std::string path_of(std::string_view name) const;
  Value mapping_;
  std::vector<Member> members_;
  std::vector<std::string_view> known_;  // names that were asked for
};

}  // namespace pando::config
