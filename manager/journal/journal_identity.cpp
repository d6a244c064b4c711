#include "manager/journal/journal_identity.h"

#include <xxhash.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "base/random.h"
#include "manager/journal/journal_recovery.h"
#include "manager/journal/record/journal_format.h"
#include "manager/journal/segment_reader.h"
#include "manager/journal/snapshot_file.h"

namespace pando::manager {

namespace {

constexpr std::size_t kWordDigits = 16;
constexpr std::size_t kDigits = 2 * kWordDigits;
constexpr std::size_t kFileBytes = kDigits + 1 + kWordDigits + 1;

/// The file's text. Most flipped bits of a hexadecimal digit make another digit, which would be the
/// identity of no store; hence the checksum.
std::string text_of(std::string_view digits) {
  return fmt::format("{} {:016x}\n", digits, XXH3_64bits(digits.data(), digits.size()));
}

std::optional<shm::StoreOwner> parse(std::string_view text) {
  shm::StoreOwner identity{};
  if (text.size() != kFileBytes || text != text_of(text.substr(0, kDigits))) return std::nullopt;
  for (std::size_t i = 0; i < identity.size(); ++i) {
    const char* const begin = text.data() + i * kWordDigits;
    const char* const end = begin + kWordDigits;
    if (std::from_chars(begin, end, identity[i], 16).ptr != end) return std::nullopt;
  }
  // All zeros mean a store without a journal.
  if (identity == shm::StoreOwner{}) return std::nullopt;
  return identity;
}

/// The copy in one of the journal's files; zeros: it is another file, or has none.
Result<shm::StoreOwner> identity_in(Files& files, const std::string& directory,
                                    const std::string& name) {
  const std::string path = directory + "/" + name;
  if (journal_file_number(name, kSegmentSuffix)) {
    auto segment = SegmentReader::open(files, path);
    if (!segment) return pass(segment);
    return segment->header().identity;
  }
  if (!journal_file_number(name, kSnapshotSuffix)) return shm::StoreOwner{};
  auto snapshot = SnapshotFile::open(files, path);
  if (!snapshot) return pass(snapshot);
  return snapshot->header().owner;
}

}  // namespace

Result<shm::StoreOwner> make_identity(Files& files, const std::string& directory) {
  const std::string path = directory + "/identity";
  if (files.open(path, OpenMode::kRead))
    if (auto kept = keep_file(files, path, kDamagedSuffix); !kept) return pass(kept);
  const shm::StoreOwner identity = {random_number<std::uint64_t>(), random_number<std::uint64_t>()};
  if (auto written = write_identity(files, directory, identity); !written) return pass(written);
  return identity;
}

Result<shm::StoreOwner> identity_in_files(Files& files, const std::string& directory) {
  auto names = files.list(directory);
  if (!names) return pass(names);
  Result<shm::StoreOwner> known = fail(Errc::kNotFound, "{}: no file has its identity", directory);
  for (const std::string& name : *names) {
    auto found = identity_in(files, directory, name);
    if (!found && found.error().code != Errc::kCorrupt && !known) known = pass(found);
    if (!found || *found == shm::StoreOwner{}) continue;
    if (known && *known != *found)
      return fail(Errc::kCorrupt, "{}: the folder has files of two journals", directory);
    known = *found;
  }
  return known;
}

Status write_identity(Files& files, const std::string& directory,
                      const shm::StoreOwner& identity) {
  const std::string path = directory + "/identity";
  const std::string text = text_of(fmt::format("{:016x}{:016x}", identity[0], identity[1]));
  if (auto written = write_file_atomically(files, path, bytes_of_text(text)); !written)
    return fail(written.error().code, "{}: {}", path, written.error().text);
  return {};
}

Result<shm::StoreOwner> journal_identity(Files& files, const std::string& directory) {
  const std::string path = directory + "/identity";
  auto file = files.open(path, OpenMode::kRead);
  // A journal without the file has lost it: live store and image have the old one.
  if (!file && file.error().code == Errc::kNotFound && !has_segments(files, directory))
    return make_identity(files, directory);
  if (!file) return pass(file);
  Bytes bytes(kFileBytes + 1);
  auto got = (*file)->read_at(0, bytes);
  if (!got) return fail(got.error().code, "{}: {}", path, got.error().text);
  const auto identity = parse({reinterpret_cast<const char*>(bytes.data()), *got});
  if (!identity) return fail(Errc::kCorrupt, "{}: not 32 hexadecimal digits with their checksum", path);
  return *identity;
}

}  // namespace pando::manager
