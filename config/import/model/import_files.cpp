#include "config/import/model/import_files.h"

#include <glob.h>

#include <algorithm>
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

/// Files that an include means, sorted; a folder means those in it that end with `suffix`.
std::vector<std::string> find_included(const std::string& pattern, std::string_view suffix) {
  std::vector<std::string> found;
  std::error_code none;
  if (std::filesystem::is_directory(pattern, none)) {
    for (const auto& entry : std::filesystem::directory_iterator(pattern, none))
      if (is_included(entry, suffix)) found.push_back(entry.path().string());
    std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
      return lower_case(a) < lower_case(b);
    });
    return found;
  }
  glob_t matches{};
  if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0)
    found.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  ::globfree(&matches);
  return found;
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
                                           std::string_view suffix) const {
  const std::string own = std::filesystem::path(*at.file).parent_path().string();
  for (const std::string& folder : {folder_.empty() ? own : folder_, own, first_})
    if (auto found = find_included((std::filesystem::path(folder) / pattern).string(), suffix);
        !found.empty())
      return found;
  return {};
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
  const auto files = find(at, pattern, suffix);
  const bool is_pattern = pattern.find_first_of("*?[") != std::string_view::npos;
  if (files.empty() && !is_pattern)
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
