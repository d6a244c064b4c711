#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/import/model/imported.h"

namespace pando::config {

/// One input file: its text and its name for the report.
struct ImportText {
  std::shared_ptr<const std::string> name;
  std::string text;
};

/// Reads the files of an import within bounds, and finds included ones.
class ImportFiles {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;  ///< of all files together
  static constexpr int kMaxIncludes = 16;  ///< depth; more is a file that includes itself
  static constexpr int kMaxNesting = 32;   ///< of braces; parsers recurse
  static constexpr std::size_t kMaxStatements = 2'000'000;  ///< bounds the memory of parsed files
  /// Of a pattern; glob() reads as many folders as there are combinations.
  static constexpr int kMaxWildcards = 4;
  static constexpr int kMaxPatternFolders = 64;  ///< below the first wildcard; glob() recurses
  /// Entries of folders and files that the patterns of all includes together look at.
  static constexpr std::size_t kMaxListed = 100'000;

  /// `with_includes` false: no file is opened but by read(), for tests of parsers.
  explicit ImportFiles(bool with_includes = true, std::size_t max_listed = kMaxListed)
      : with_includes_(with_includes), max_listed_(max_listed) {}

  /// Whether include() reads files.
  [[nodiscard]] bool has_includes() const noexcept { return with_includes_; }

  Result<ImportText> read(const std::string& path);
  /// Takes a text from memory instead of a file; it counts as well.
  Result<ImportText> text_of(std::string name, std::string text);

  /// Later includes are looked for in `folder` first, which is seen from the file `from`.
  void look_in(const std::string& from, std::string_view folder);
  /// Calls `visit` with each file that `pattern` (a name or a glob, or a folder) means: seen from
  /// the folder of look_in(), else from the including file, else from the first file. A folder
  /// means its files that end with `suffix`. A file that cannot be read is reported; an error of
  /// `visit` ends it.
  Status include(const SourceLine& at, std::string_view pattern, ImportReport& report,
                 const std::function<Status(const ImportText&)>& visit,
                 std::string_view suffix = {});

  /// Counts a statement; an error at kMaxStatements.
  Status count_statement();

 private:
  std::vector<std::string> find(const SourceLine& at, std::string_view pattern,
                                std::string_view suffix);

  bool with_includes_;
  std::size_t max_listed_;
  std::size_t listed_ = 0;
  std::string folder_;  ///< of look_in()
  std::string first_;   ///< the first file's folder
  std::size_t bytes_ = 0;
  std::size_t statements_ = 0;
  int depth_ = 0;
};

}  // namespace pando::config
