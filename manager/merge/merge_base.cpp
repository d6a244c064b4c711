#include "manager/merge/merge_base.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>

#include "base/progress.h"
#include "dns/zonefile/zone_scanner.h"
#include "dns/zonefile/zone_scanner_source.h"

namespace pando::manager {

namespace {

/// Granularity of change times: a kernel tick, or coarser (two seconds on FAT).
constexpr std::chrono::nanoseconds kGrain = std::chrono::seconds(2);

std::int64_t nanoseconds(const timespec& time) noexcept {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::uint32_t stamp_of(const struct stat& file) noexcept {
  const std::int64_t changed = nanoseconds(file.st_ctim);
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  // Also for a change time in the future: the clock may come to that time again.
  if (now.count() - changed < kGrain.count()) return 0;
  const std::array<std::uint64_t, 2> words{static_cast<std::uint64_t>(changed),
                                           std::uint64_t{file.st_ino}};
  const auto stamp = static_cast<std::uint32_t>(XXH3_64bits(words.data(), sizeof words));
  return std::max(stamp, kIncludesOthers + 1);
}

/// Finds `$INCLUDE` in text that arrives in pieces. The word counts in comments and strings, too: a
/// false hit costs only a scan.
class IncludeFinder {
 public:
  /// True once this piece or an earlier one contained the word.
  bool find_in(std::string_view text) noexcept {
    while (at_ < kWord.size() && !text.empty()) {
      if (at_ == 0) text.remove_prefix(std::min(text.find(kWord[0]), text.size()));
      if (text.empty()) break;
      const bool fits = in_capitals(text[0]) == kWord[at_];
      if (fits) text.remove_prefix(1);  // a mismatch can still be the word's first letter
      at_ = fits ? at_ + 1 : 0;
    }
    return at_ == kWord.size();
  }

 private:
  static constexpr std::string_view kWord = "$INCLUDE";
  static char in_capitals(char c) noexcept {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  std::size_t at_ = 0;  // number of the word's letters that matched so far
};

/// True if the load of the zone on this thread was given up.
bool is_given_up() noexcept {
  const Progress* const progress = Progress::here();
  return progress != nullptr && progress->is_given_up();
}

/// Scans a file to hash it together with its included files. Record names do not matter for the
/// hash, so the origin is the root zone.
FileContent scan_content(const std::string& path, std::uint64_t most_bytes) {
  std::atomic<std::uint64_t> bytes = 0;
  dns::ScanOptions options;
  options.max_errors = 1;
  options.bytes_read = &bytes;
  const auto report = dns::scan_zone_file(path, options, [&](const dns::ScannedRecord&) -> Status {
    if (is_given_up()) return fail(Errc::kExists, kGivenUp);
    if (bytes <= most_bytes) return {};
    return fail(Errc::kFull, "more than {} bytes", most_bytes);
  });
  if (!report.ok()) return {};
  return {report.content_hash, report.has_included};
}

bool same_state(const zone::ZoneFileInfo& a, const zone::ZoneFileInfo& b) noexcept {
  return a.file_mtime_ns == b.file_mtime_ns && a.file_bytes == b.file_bytes && a.stamp == b.stamp;
}

}  // namespace

zone::ZoneFileInfo source_from(const struct stat& status) {
  zone::ZoneFileInfo source;
  source.file_mtime_ns = nanoseconds(status.st_mtim);
  source.file_bytes = static_cast<std::uint64_t>(status.st_size);
  source.stamp = stamp_of(status);
  return source;
}

std::optional<zone::ZoneFileInfo> stat_source(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return source_from(status);
}

FileContent read_content(const std::string& path, std::uint64_t most_bytes) {
  constexpr std::size_t kBlock = std::size_t{256} << 10;
  dns::FileSource file;
  if (!file.open(path)) return {};
  // One byte more than the file, so that the first read already shows the end of a small file.
  const std::size_t size = std::min(kBlock, file.size_hint()) + 1;
  const auto block = std::make_unique_for_overwrite<char[]>(size);
  IncludeFinder finder;
  for (;;) {
    const auto got = file.read(block.get(), size);
    if (!got || is_given_up()) return {};
    if (finder.find_in({block.get(), *got})) return scan_content(path, most_bytes);
    if (*got < size) return {file.content_hash(), false};
  }
}

void add_content(zone::ZoneFileInfo& source, const FileContent& content) noexcept {
  source.hash = content.hash;
  if (content.has_included) source.stamp = kIncludesOthers;
}

FileCheck check_file(const std::string& path, const zone::ZoneFileInfo& base,
                     std::uint64_t most_bytes, const zone::ZoneFileInfo& read_before) {
  using Kind = FileCheck::Kind;
  const auto found = stat_source(path);
  if (!found) return {};
  FileCheck check{Kind::kOther, *found};
  if (found->file_bytes != base.file_bytes) return check;
  if (base.stamp != 0 && same_state(*found, base)) return {Kind::kSame, base};
  if (read_before.hash != 0 && same_state(*found, read_before)) {
    check.now = read_before;
  } else if (found->file_bytes <= most_bytes) {
    check.hashed = true;
    add_content(check.now, read_content(path, most_bytes));
  }
  FileCheck compared = compare_content(check.now, base);
  compared.hashed = check.hashed;
  return compared;
}

FileCheck compare_content(const zone::ZoneFileInfo& now, const zone::ZoneFileInfo& base) {
  using Kind = FileCheck::Kind;
  if (now.hash == 0 || now.hash != base.hash || now.file_bytes != base.file_bytes)
    return {Kind::kOther, now};
  // Nothing to record if the state is the same: the change is too recent for a stamp, or the file
  // includes others.
  if (same_state(now, base)) return {Kind::kSame, base};
  return {Kind::kTouched, now};
}

}  // namespace pando::manager
