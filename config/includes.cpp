#include "config/includes.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

#include "config/files.h"
#include "config/settings/open_text.h"
#include "config/yaml/joined_documents.h"

namespace pando::config {

namespace {

namespace fs = std::filesystem;

/// Files that include each other in turn, without the first. People seldom need two.
constexpr std::size_t kMaxNested = 8;

/// All included files: one for each of thousands of customers is meant, a pattern that names a
/// whole disk is not.
constexpr std::size_t kMaxFiles = 10'000;

/// Lines of all files: their numbers are an `int`.
constexpr std::size_t kMaxLines = std::numeric_limits<int>::max();

std::size_t lines_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
}

/// The text of an included file.
struct FileText {
  std::string text;
  bool open_to_others = false;
};

/// Follows the keys `include` from the first file on.
class IncludeReader {
 public:
  IncludeReader(Context& context, YamlDocument& document, std::string_view text)
      : context_(context), document_(document), joined_(document), lines_(lines_of(text)) {
    known_.push_back({identity(context.file), {context.file, 0}, true});
  }

  bool read() {
    read_keys(document_.root(), context_.folder, 0);
    joined_.merge(kInclude);
    return !failed_;
  }

 private:
  /// A file that was read.
  struct Known {
    std::string identity;
    Place from;         ///< what includes it
    bool open = false;  ///< the files that it includes are being read
  };

  void fail(const Value& value, std::string_view reason) {
    value.fail(reason);
    failed_ = true;
  }

  /// Two names of one file are the same file.
  [[nodiscard]] std::string identity(const std::string& path) const {
    std::error_code error;
    const fs::path whole = fs::absolute(path, error).lexically_normal();
    if (context_.options.included != nullptr) return whole.string();
    const fs::path real = fs::canonical(whole, error);
    return error ? whole.string() : real.string();
  }

  /// Reads what the root of one file includes.
  void read_keys(YamlNode root, const std::string& folder, std::size_t nested) {
    bool found = false;
    for (std::size_t i = 0; i < root.size() && root.is_mapping(); ++i) {
      const YamlNode key = root.key(i);
      if (!key.is_scalar() || key.text() != kInclude) continue;
      const Value value(context_, root.value(i), kInclude, key.line());
      // A second key of the first file is reported with its other keys.
      if (std::exchange(found, true) && nested > 0) fail(value, "given twice");
      read_value(value, folder, nested);
    }
  }

  void read_value(const Value& value, const std::string& folder, std::size_t nested) {
    if (value.is_null()) return;
    if (value.node().is_scalar()) return read_pattern(value, folder, nested);
    if (!value.is_list()) return static_cast<void>(failed_ = true);
    value.for_each([&](const Value& element) { read_pattern(element, folder, nested); });
  }

  void read_pattern(const Value& value, const std::string& folder, std::size_t nested) {
    const auto text = value.scalar();
    if (!text) return static_cast<void>(failed_ = true);
    if (text->empty()) return fail(value, "needs the path of a file, or a pattern");
    const auto files = find_files(folder, *text);
    if (!files) return fail(value, files.error().text);
    for (const std::string& file : *files) {
      if (context_.problems.full()) return;
      read_file(value, file, nested + 1);
    }
  }

  [[nodiscard]] Result<std::vector<std::string>> find_files(const std::string& folder,
                                                            std::string_view text) const {
    const FileTexts* texts = context_.options.included;
    if (texts == nullptr) return matching_files(folder, text);
    const std::string pattern = (fs::path(folder) / text).lexically_normal().string();
    std::vector<std::string> files;
    for (const auto& [path, ignored] : *texts)
      if (::fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0)
        files.push_back(path);
    if (files.empty() && !is_pattern(text))
      return pando::fail(Errc::kNotFound, "there is no file {}", pattern);
    return files;
  }

  void read_file(const Value& value, const std::string& file, std::size_t nested) {
    std::string name = identity(file);
    const auto before = std::ranges::find(known_, name, &Known::identity);
    if (before != known_.end()) return refuse_again(value, file, *before);
    if (nested > kMaxNested)
      return fail(value, fmt::format("{}: more than {} files include each other", file,
                                     kMaxNested));
    if (known_.size() > kMaxFiles)
      return fail(value, fmt::format("{}: more than {} files are included", file, kMaxFiles));
    auto read = read_text(file);
    if (!read) return fail(value, read.error().text);
    known_.push_back({std::move(name), context_.place_of(value.line()), true});
    const std::size_t number = known_.size() - 1;
    add_file(value, file, *read, nested);
    known_[number].open = false;
  }

  void refuse_again(const Value& value, const std::string& file, const Known& before) {
    if (before.open) return fail(value, fmt::format("{} would include itself", file));
    fail(value, fmt::format("{} is included already, by {}:{}", file, before.from.file,
                            before.from.line));
  }

  [[nodiscard]] Result<FileText> read_text(const std::string& file) const {
    if (const FileTexts* texts = context_.options.included)
      return FileText{texts->find(file)->second, false};
    const auto fd = open_regular_file(file);
    if (!fd) return pass(fd);
    auto text = read_open_file(*fd, file);
    if (!text) return pass(text);
    return FileText{std::move(*text), is_open_to_others(*fd)};
  }

  void add_file(const Value& value, const std::string& file, const FileText& read,
                std::size_t nested) {
    context_.fingerprint = fold_text(context_.fingerprint, read.text);
    context_.sources.included.push_back(file);
    const std::size_t errors = context_.problems.error_count();
    const auto document = parse_file(context_, file, read.text);
    failed_ = failed_ || context_.problems.error_count() != errors;
    if (!document) return;
    const std::size_t lines = lines_of(read.text);
    if (!joined_.fits(*document) || lines > kMaxLines - lines_)
      return fail(value, fmt::format("{}: all files together are too large", file));
    const YamlNode found = document->root();
    if (found.is_null()) return;
    if (!found.is_mapping() || !found.tag().empty()) {
      context_.problems.error(file, found.line(), "", "needs a mapping of keys to values");
      return static_cast<void>(failed_ = true);
    }
    const YamlNode root = joined_.add(*document, static_cast<int>(lines_));
    context_.included.push_back({file, static_cast<int>(lines_), read.open_to_others});
    lines_ += lines;
    read_keys(root, fs::path(file).parent_path().string(), nested);
  }

  Context& context_;
  YamlDocument& document_;
  JoinedDocuments joined_;
  std::size_t lines_;
  std::vector<Known> known_;
  bool failed_ = false;
};

}  // namespace

std::optional<YamlDocument> parse_file(Context& context, const std::string& file,
                                       std::string_view text) {
  auto document = YamlDocument::parse(text, YamlDocument::Behind::kFind);
  // The parser tells where it noticed that something is open, and takes the end of the text for the
  // end of a quote.
  if (!document || text.find_first_of("\"'") != std::string_view::npos)
    if (const OpenText open = find_open_text(text); open.line != 0) {
      context.problems.error(file, open.line, "", open.message);
      return std::nullopt;
    }
  if (!document) {
    context.problems.error(file, document.error().line, "", document.error().text);
    return std::nullopt;
  }
  if (document->behind_line() != 0)
    context.problems.error(file, document->behind_line(), "",
                           "text behind the end of the first document: only one is read");
  return std::move(*document);
}

bool read_includes(Context& context, YamlDocument& document, std::string_view text) {
  const YamlNode root = document.root();
  if (!root.find(kInclude) || !root.tag().empty()) return true;
  return IncludeReader(context, document, text).read();
}

void warn_of_open_includes(Context& context) {
  for (const IncludedFile& file : context.included)
    if (file.has_secrets && file.open_to_others)
      context.problems.warning(file.path, 0, "",
                               fmt::format("other users can read or write this file, which has "
                                           "secrets: chmod o= {}", file.path));
}

}  // namespace pando::config
