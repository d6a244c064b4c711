#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/types.h"
#include "shm/store.h"
#include "zone/read/store_view.h"

/// Conversion of name records between their bytes in the store and a form that can be edited.
namespace pando::zone {

/// One RRset while it is edited. The views point into the store or into the caller's changeset.
struct RRsetDraft {
  dns::RRType type{};
  dns::Ttl ttl{};
  std::vector<ByteView> rdatas;
  std::vector<ByteView> signatures;  ///< RRSIG RDATA without "type covered"
  /// reference of these RDATAs if the zone stores them once for many names, 0 = none
  std::uint32_t shared = 0;
};

/// All RRsets of one name, ascending by type.
struct NameDraft {
  ByteView labels;  ///< relative owner, in its stored spelling
  std::vector<RRsetDraft> rrsets;
  /// Whole names that the store has in relative form. Sets, and copies of them, have views of these
  /// names.
  std::shared_ptr<const Bytes> whole_names;

  [[nodiscard]] RRsetDraft* find(dns::RRType type) noexcept;
  [[nodiscard]] const RRsetDraft* find(dns::RRType type) const noexcept;
  /// The set of that type, created when absent.
  RRsetDraft& at(dns::RRType type);
  /// Drops sets without RDATAs and RRSIGs.
  void drop_empty();
  [[nodiscard]] std::uint64_t record_count() const noexcept;
};

/// Sorts RDATAs and RRSIGs canonically (RFC 4034 §6.3) and drops duplicates (RFC 2181 §5).
/// Returns how many were dropped.
std::size_t normalise(RRsetDraft& rrset);

/// Decodes a record of the store. Its names are whole, because the record may be written at another
/// owner.
NameDraft decode_record(const RecordView& record);

/// The set's data as a shared page has them: RDATAs, then RRSIGs, no name in relative form
/// (zone/trie/zone_layout.h).
void pack_data(const RRsetDraft& rrset, Bytes& out);

/// Whether some RDATAs of the set will be stored in relative form, which is shorter than sharing.
[[nodiscard]] bool has_relative_form(const RRsetDraft& rrset, const OwnerName& owner) noexcept;

/// Makes the record refer to `shared`, where the packed RDATAs of `rrset` stand, too.
void refer_to_shared(const shm::Window& window, RRsetDraft& rrset, std::uint32_t shared);

/// Whether write_record() can write these sets; kInvalid for the reasons of write_record().
Status check_sets(const NameDraft& name);

/// Writes a record of a zone with that apex as a fresh block (large RRsets as blocks of their own).
/// kInvalid: more than 8191 RDATAs or 65535 RRSIGs in a set, more than 255 sets at the name, or a
/// malformed server's name. kFull.
Result<std::uint32_t> write_record(shm::Transaction& transaction, dns::NameView apex,
                                   const NameDraft& name);

/// Releases the record's blocks from the version.
void release_record(shm::Transaction& transaction, std::uint32_t ref);

/// Bytes of all the record's blocks, as the store counts them; 0 when the record is damaged.
[[nodiscard]] std::size_t stored_bytes(shm::Window window, std::uint32_t ref) noexcept;

/// The bytes of a record's blocks by their use. `external` has the blocks of large RRsets.
struct RecordParts {
  std::size_t octets = 0;      ///< of the record's own block
  std::size_t owner = 0;       ///< its header and the owner's labels
  std::size_t headers = 0;     ///< of RRsets, with references to data elsewhere
  std::size_t rdata = 0;       ///< with lengths; also in external blocks, but not in shared pages
  std::size_t signatures = 0;  ///< with lengths, as `rdata`
  std::vector<std::pair<std::uint32_t, std::size_t>> external;  ///< reference, bytes
};

/// False when the record is damaged.
bool take_apart(shm::Window window, std::uint32_t ref, RecordParts& parts);

/// Copies the blocks that lie in victim chunks (the record's block or its large RRsets). Returns
/// the same reference when no block did.
Result<std::uint32_t> relocate_record(shm::Transaction& transaction, std::uint32_t ref);

}  // namespace pando::zone
