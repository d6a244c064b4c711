#include "manager/noted_file.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include "dns/zone_scanner_source.h"

namespace pando::manager {

namespace {

/// Change times are those of the kernel's last tick, or coarser: two seconds on FAT.
constexpr std::chrono::nanoseconds kGrain = std::chrono::seconds(2);

std::int64_t nanoseconds(const timespec& time) noexcept {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::uint32_t stamp_of(const struct stat& file) noexcept {
  const std::int64_t changed = nanoseconds(file.st_ctim);
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  // In the future, too: nobody knows when that clock gets there.
  if (now.count() - changed < kGrain.count()) return 0;
  const std::array<std::uint64_t, 2> words{static_cast<std::uint64_t>(changed),
                                           std::uint64_t{file.st_ino}};
  const auto stamp = static_cast<std::uint32_t>(XXH3_64bits(words.data(), sizeof words));
  return stamp == 0 ? 1 : stamp;
}

}  // namespace

zone::ZoneSource source_from(const struct stat& status) {
  zone::ZoneSource source;
  source.file_mtime_ns = nanoseconds(status.st_mtim);
  source.file_octets = static_cast<std::uint64_t>(status.st_size);
  source.stamp = stamp_of(status);
  return source;
}

std::optional<zone::ZoneSource> stat_source(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return source_from(status);
}

std::uint64_t hash_file(const std::string& path) {
  constexpr std::size_t kBlock = std::size_t{256} << 10;
  dns::FileSource file;
  if (!file.open(path)) return 0;
  // One more, so that a small file is seen to be whole at once.
  const std::size_t size = std::min(kBlock, file.size_hint()) + 1;
  const auto block = std::make_unique_for_overwrite<char[]>(size);
  for (;;) {
    const auto got = file.read(block.get(), size);
    if (!got) return 0;
    if (*got < size) return file.content_hash();
  }
}

FileCheck check_file(const std::string& path, const zone::ZoneSource& noted,
                     std::uint64_t most_octets) {
  using Kind = FileCheck::Kind;
  const auto found = stat_source(path);
  if (!found) return {};
  FileCheck check{Kind::kOther, *found};
  const auto same = [&] { return FileCheck{Kind::kSame, noted, check.hashed}; };
  const bool same_time = found->file_mtime_ns == noted.file_mtime_ns;
  const bool same_stamp = noted.stamp != 0 && found->stamp == noted.stamp;
  if (found->file_octets != noted.file_octets) return check;
  if (same_time && same_stamp) return same();
  if (noted.hash == 0) return same_time && noted.stamp == 0 ? same() : check;
  if (found->file_octets > most_octets) return check;
  check.hashed = true;
  check.now.hash = hash_file(path);
  if (check.now.hash != noted.hash) return check;
  if (same_time && found->stamp == noted.stamp) return same();  // both 0: too near still
  check.kind = Kind::kTouched;
  return check;
}

}  // namespace pando::manager
