#pragma once

#include <cstdint>

#include "base/result.h"
#include "zone/builder/name_writer.h"
#include "zone/draft/collected.h"
#include "zone/trie/trie_edit.h"

namespace pando::zone {

/// Merges late records into a trie that was built without them.
class LateMerge {
 public:
  /// `late` is sorted. Records before its mark came before the written names, the others after.
  /// `root` is the trie and `apex` the apex's record, each 0 when there is none.
  LateMerge(NameWriter& writer, shm::Transaction& transaction, LateRecords& late,
            std::uint32_t root, std::uint32_t apex) noexcept
      : writer_(writer), transaction_(transaction), late_(late), root_(root), apex_(apex) {}

  /// Changes the trie name by name: for few late names. Returns the root. The first name in
  /// canonical order that breaks a rule or limit is the error: kInvalid, kFull; kCorrupt.
  Result<std::uint32_t> put_each();
  /// Builds the trie anew from its `leaves` leaves and the late names, side by side. Errors as in
  /// put_each().
  Result<std::uint32_t> rebuild(std::uint64_t leaves);

 private:
  Result<std::uint32_t> write(const LateRecords::Group& group, std::uint32_t old);

  NameWriter& writer_;
  shm::Transaction& transaction_;
  LateRecords& late_;
  std::uint32_t root_;
  std::uint32_t apex_;
};

}  // namespace pando::zone
