#pragma once

#include <array>
#include <cstdint>

#include "zone/build/collected.h"
#include "zone/build/name_writer.h"
#include "zone/trie/key.h"
#include "zone/trie/trie_edit.h"

namespace pando::zone {

/// One of a zone's tries, built while the records come, from where some names in a row came in
/// order. The last name in order is open: it is
/// written when a name behind it comes. A record of a name before it is late; so are those of a
/// name that breaks a rule when it is to be written, since a late record may mend that.
///
///     … www ─▶ [open: x] ─▶ y      behind the open name: x is written, y opened
///          ▲     ▲
///        late   more of x
class NameStream {
 public:
  /// `writer` is shared by a zone's streams; it must stay where it is.
  NameStream(NameWriter& writer, shm::Transaction& transaction) noexcept
      : writer_(writer), transaction_(transaction), trie_(transaction) {}

  /// `labels`: the owner's, relative to the apex. kFull, kCorrupt: nothing can follow.
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
  std::uint32_t apex_ = 0;  // its record, which hangs on the zone entry and not in the trie

  bool is_open_ = false;
  Bytes labels_;                 // of the open name, as spelt first
  Bytes records_;                // its CollectedRecords
  std::array<TrieKey, 2> keys_;  // the last name's in order and that of the one being looked at
  unsigned key_ = 0;

  bool streams_ = false;
  unsigned names_in_order_ = 0;    // so far
  std::size_t in_order_from_ = 0;  // where they begin in late_
  Bytes record_;                   // the one being looked at
  LateRecords late_;
};

}  // namespace pando::zone
