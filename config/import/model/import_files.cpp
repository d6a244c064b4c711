#include "config/import/model/import_files.h"

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <filesystem>

#include "config/files.h"

namespace pando::config {

namespace {

/// Whether a folder that is included has this file for the other server.
bool is_included(const std::filesystem::directory_entry& entry, std::string_view suffix) {
  std::error_code none;
  const std::string name = entry.path().filename().string();
  return entry.is_regular_file(none) && !name.starts_with('.') && name.ends_with(suffix);
}

/// Files of a folder that end with `suffix`, sorted.
std::vector<std::string> files_in(const std::string& folder, std::string_view suffix,
                                  std::size_t& may_list) {
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (may_list == 0) break;
    --may_list;
    if (is_included(entry, suffix)) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return lower_case(a) < lower_case(b);
  });
  return found;
}

/// How many steps glob() may still take: its functions get no argument of their own.
thread_local std::size_t* glob_may_take = nullptr;

bool may_step() {
  if (*glob_may_take == 0) return false;
  --*glob_may_take;
  return true;
}

/// Paths that match a pattern, sorted.
std::vector<std::string> matching(const std::string& pattern, std::size_t& may_list) {
  glob_may_take = &may_list;
  glob_t matches{};
  matches.gl_opendir = [](const char* path) -> void* {
    return may_step() ? ::opendir(path) : nullptr;
  };
  matches.gl_readdir = [](void* folder) {
    return may_step() ? ::readdir(static_cast<DIR*>(folder)) : nullptr;
  };
  matches.gl_closedir = [](void* folder) { ::closedir(static_cast<DIR*>(folder)); };
  matches.gl_stat = [](const char* path, struct stat* out) {
    return may_step() ? ::stat(path, out) : -1;
  };
  matches.gl_lstat = [](const char* path, struct stat* out) {
    return may_step() ? ::lstat(path, out) : -1;
  };
  std::vector<std::string> found;
  if (::glob(pattern.c_str(), GLOB_ALTDIRFUNC, nullptr, &matches) == 0)
    found.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  ::globfree(&matches);
  return found;
}

bool has_wildcard(std::string_view text) { return text.find_first_of("*?[") != text.npos; }

/// A folder's name as a pattern that matches it alone.
std::string escaped(std::string_view folder) {
  std::string pattern;
  for (const char c : folder) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern;
}

/// The reason why a pattern is not looked for; empty if it is.
std::string refusal_of_pattern(std::string_view pattern) {
  if (pattern.size() >= PATH_MAX) return "is longer than a path may be";
  int wildcards = 0;
  int folders = 0;
  while (!pattern.empty()) {
    const auto slash = std::min(pattern.find('/'), pattern.size());
    wildcards += has_wildcard(pattern.substr(0, slash));
    folders += wildcards > 0;
    pattern.remove_prefix(std::min(slash + 1, pattern.size()));
  }
  if (wildcards > ImportFiles::kMaxWildcards)
    return fmt::format("has more than {} wildcards below each other", ImportFiles::kMaxWildcards);
  if (folders > ImportFiles::kMaxPatternFolders)
    return fmt::format("has more than {} folders below a wildcard",
                       ImportFiles::kMaxPatternFolders);
  return {};
}

/// Dumps of databases are often kept so. Their octets would only give strange faults of a syntax.
bool is_compressed(std::string_view text) {
  for (const std::string_view magic : {"\x1F\x8B", "BZh", "\3757zXZ", "\x28\xB5\x2F\xFD"})
    if (text.starts_with(magic)) return true;
  return false;
}

}  // namespace

Result<ImportText> ImportFiles::read(const std::string& path) {
  std::error_code unknown;
  const auto size = std::filesystem::file_size(path, unknown);
  if (!unknown && size > kMaxBytes - bytes_)
    return fail(Errc::kFull, "{}: the files have more than {} bytes", path, kMaxBytes);
  auto text = read_regular_file(path);
  if (!text) return pass(text);
  return text_of(path, std::move(*text));
}

Result<ImportText> ImportFiles::text_of(std::string name, std::string text) {
  if (text.size() > kMaxBytes - bytes_)
    return fail(Errc::kFull, "{}: the files have more than {} bytes", name, kMaxBytes);
  if (is_compressed(text)) return fail(Errc::kInvalid, "{}: is compressed: unpack it first", name);
  bytes_ += text.size();
  if (first_.empty()) first_ = std::filesystem::path(name).parent_path().string();
  return ImportText{std::make_shared<const std::string>(std::move(name)), std::move(text)};
}

void ImportFiles::look_in(const std::string& from, std::string_view folder) {
  folder_ = (std::filesystem::path(from).parent_path() / folder).string();
}

std::vector<std::string> ImportFiles::find(const SourceLine& at, std::string_view pattern,
                                           std::string_view suffix) {
  const std::string own = std::filesystem::path(*at.file).parent_path().string();
  std::size_t may_list = max_listed_ - listed_;
  std::vector<std::string> found;
  for (const std::string& folder : {folder_.empty() ? own : folder_, own, first_}) {
    const std::string path = (std::filesystem::path(folder) / pattern).string();
    std::error_code none;
    const bool is_folder = std::filesystem::is_directory(path, none);
    if (is_folder)
      found = files_in(path, suffix, may_list);
    else if (has_wildcard(pattern))
      found = matching((std::filesystem::path(escaped(folder)) / pattern).string(), may_list);
    if (!is_folder && found.empty() && std::filesystem::exists(path, none)) found.push_back(path);
    if (!found.empty() || pattern.starts_with('/')) break;
  }
  listed_ = max_listed_ - may_list;
  return found;
}

Status ImportFiles::include(const SourceLine& at, std::string_view pattern, ImportReport& report,
                            const std::function<Status(const ImportText&)>& visit,
                            std::string_view suffix) {
  const std::string statement = fmt::format("include {}", pattern);
  if (pattern.empty() || pattern.find('\0') != std::string_view::npos || !with_includes_) {
    report.add(at, statement, "nothing is included");
    return {};
  }
  if (depth_ >= kMaxIncludes)
    return fail(Errc::kInvalid, "{}:{}: {}: more than {} files include each other", *at.file,
                at.line, statement, kMaxIncludes);
  if (const std::string refusal = refusal_of_pattern(pattern); !refusal.empty()) {
    report.add(at, statement, refusal);
    return {};
  }
  const auto files = find(at, pattern, suffix);
  if (listed_ == max_listed_) {
    report.add(at, statement,
               fmt::format("nothing is included: more than {} files to look through", max_listed_));
    return {};
  }
  if (files.empty() && !has_wildcard(pattern))
    report.add(at, statement, "there is no such file, so nothing in it is taken over");
  for (const std::string& file : files) {
    auto text = read(file);
    if (!text && text.error().code == Errc::kFull) return pass(text);
    if (!text) {
      report.add(at, statement, text.error().text);
      continue;
    }
    ++depth_;
    auto done = visit(*text);
    --depth_;
    if (!done) return done;
  }
  return {};
}

Status ImportFiles::count_statement() {
  if (++statements_ > kMaxStatements)
    return fail(Errc::kFull, "more than {} statements", kMaxStatements);
  return {};
}

}  // namespace pando::config
