#pragma once

#include <array>
#include <cstdint>

#include "zone/builder/name_writer.h"
#include "zone/draft/collected.h"
#include "zone/trie/key.h"
#include "zone/trie/trie_edit.h"

namespace pando::zone {

/// One of a zone's tries, built while the records come, once some consecutive names came in order.
/// The last name in order is open: it is written when a name after it comes. A record of a name
/// before the open name is late. So are the records of a name that breaks a rule when it is to be
/// written, since a late record may repair the name.
///
///     … www ─▶ [open: x] ─▶ y      after the open name: x is written, y opened
///          ▲     ▲
///        late   more of x
class NameStream {
 public:
  /// `writer` is shared by a zone's streams and must not move.
  NameStream(NameWriter& writer, shm::Transaction& transaction) noexcept
      : writer_(writer), transaction_(transaction), trie_(transaction) {}

  /// `labels`: the owner's, relative to the apex. After kFull or kCorrupt no record can follow.
  Status add(ByteView labels, dns::RRType type, dns::Ttl ttl, ByteView rdata);
  /// The trie's root, once; 0 when there is no name beside the apex. Errors as those of
  /// ZoneBuilder::finish().
  Result<std::uint32_t> finish();

 private:
  [[nodiscard]] TrieKey& last_key() noexcept { return keys_[key_]; }
  [[nodiscard]] TrieKey& other_key() noexcept { return keys_[1 - key_]; }
  void swap_keys() noexcept { key_ = 1 - key_; }
  Status wait(ByteView labels);
  Status begin();
  Status stream(ByteView labels, ByteView record);
  void open(ByteView labels);
  Status close();
  template <class Visit>
  Status for_each_open(Visit&& visit) const;
  Status put_off();

  NameWriter& writer_;
  shm::Transaction& transaction_;
  TrieBuilder trie_;
  std::uint64_t leaves_ = 0;
  // the apex's record, which belongs to the zone entry and not to the trie
  std::uint32_t apex_ = 0;

  bool is_open_ = false;
  Bytes labels_;                 // of the open name, in its first spelling
  Bytes records_;                // CollectedRecords of the open name
  std::array<TrieKey, 2> keys_;  // keys of the last name in order and of the current name
  unsigned key_ = 0;

  bool streams_ = false;
  unsigned names_in_order_ = 0;    // so far
  std::size_t in_order_from_ = 0;  // index in late_ where these names begin
  Bytes record_;                   // the current record
  LateRecords late_;
};

}  // namespace pando::zone
