#include "zone/record/record_codec.h"

#include <algorithm>
#include <cstring>

#include "dns/rdata/rdata.h"
#include "zone/read/record_scan.h"
#include "zone/record/shared_sets.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

/// The stored form of a set's RDATAs.
struct Form {
  std::size_t fixed;                 // octets of each RDATA, 0 = a length stands before each
  const OwnerName* owner = nullptr;  // owner that RDATAs are relative to, null = RDATAs are whole

  Form(dns::RRType type, const OwnerName* relative_to)
      : fixed(dns::fixed_rdata_length(type)),
        owner(type == kRelativeType ? relative_to : nullptr) {}
  [[nodiscard]] ByteView operator()(ByteView rdata) const {
    return owner == nullptr ? rdata : relative_form(rdata, *owner);
  }
};

std::size_t data_bytes(const RRsetDraft& rrset, const Form& form) {
  std::size_t octets = form.fixed * rrset.rdatas.size();
  if (form.fixed == 0)
    for (const ByteView rdata : rrset.rdatas) {
      const std::size_t stored = form(rdata).size();
      octets += varint_bytes(static_cast<std::uint32_t>(stored)) + stored;
    }
  for (const ByteView signature : rrset.signatures)
    octets += varint_bytes(static_cast<std::uint32_t>(signature.size())) + signature.size();
  return octets;
}

std::uint8_t* put_octets(std::uint8_t* out, ByteView octets) {
  if (!octets.empty()) std::memcpy(out, octets.data(), octets.size());
  return out + octets.size();
}

std::uint8_t* put_data(std::uint8_t* out, const RRsetDraft& rrset, const Form& form) {
  for (const ByteView rdata : rrset.rdatas) {
    const ByteView stored = form(rdata);
    if (form.fixed == 0) out = put_varint(out, static_cast<std::uint32_t>(stored.size()));
    out = put_octets(out, stored);
  }
  for (const ByteView signature : rrset.signatures) {
    out = put_varint(out, static_cast<std::uint32_t>(signature.size()));
    out = put_octets(out, signature);
  }
  return out;
}

/// Sizes of one RRset's parts, computed once for measuring and for writing.
struct Measured {
  Form form;
  RRsetForm header;
  std::size_t data;
  bool shared;
  bool external;
  [[nodiscard]] bool has_size() const { return !header.implies_size(form.fixed); }
  [[nodiscard]] std::size_t octets() const {
    if (external || shared) return header.octets() + 1 + kExternalBytes;
    const std::size_t size = has_size() ? varint_bytes(static_cast<std::uint32_t>(data)) : 0;
    return header.octets() + size + data;
  }
};

/// Whether the RDATAs still are those of the shared set, or its first ones. Editing a set changes
/// its list and leaves the reference, so the reference alone proves nothing.
bool is_shared(const shm::Window& window, const RRsetDraft& rrset, std::size_t fixed) {
  if (rrset.shared == 0 || rrset.rdatas.empty() || !rrset.signatures.empty()) return false;
  const auto* at = reinterpret_cast<const std::uint8_t*>(window.at(shm::Ref<>{rrset.shared}, 1));
  for (const ByteView rdata : rrset.rdatas) {
    if (at != nullptr && fixed == 0) at += varint_bytes(static_cast<std::uint32_t>(rdata.size()));
    if (at == nullptr || rdata.data() != at) return false;
    at += rdata.size();
  }
  return true;
}

Measured measure(const shm::Window& window, const RRsetDraft& rrset, const OwnerName& owner) {
  const bool shared = is_shared(window, rrset, dns::fixed_rdata_length(rrset.type));
  const Form form(rrset.type, shared ? nullptr : &owner);
  const std::size_t data = data_bytes(rrset, form);
  const bool external = !shared && (data > kInlineDataBytes || data == 0);
  const auto header = RRsetForm::make(static_cast<std::uint16_t>(rrset.type), rrset.rdatas.size(),
                                      rrset.signatures.size(), rrset.ttl.seconds);
  return {form, header, data, shared, external};
}

std::uint8_t flags_of(const NameDraft& name) {
  std::uint8_t flags = 0;
  for (const RRsetDraft& rrset : name.rrsets) {
    if (rrset.rdatas.empty()) continue;
    switch (rrset.type) {
      case dns::RRType::kNS:
        flags |= RecordHeader::kHasNs;
        break;
      case dns::RRType::kCNAME:
        flags |= RecordHeader::kHasCname;
        break;
      case dns::RRType::kDNAME:
        flags |= RecordHeader::kHasDname;
        break;
      case dns::RRType::kNSEC:
        flags |= RecordHeader::kHasNsec;
        break;
      default:
        break;
    }
  }
  return flags;
}

/// Writes the part before an RRset's size.
std::uint8_t* put_header(std::uint8_t* out, const RRsetDraft& rrset, RRsetForm form) {
  *out++ = form.octet;
  const auto type = static_cast<std::uint16_t>(rrset.type);
  if (form.type_octets() == 1)
    *out++ = static_cast<std::uint8_t>(type);
  else
    out = store_unaligned(out, type);
  if (form.rdatas() == RRsetForm::kManyRdatas)
    out = store_unaligned(out, static_cast<std::uint16_t>(rrset.rdatas.size()));
  if (form.signatures() == RRsetForm::kManySignatures)
    out = store_unaligned(out, static_cast<std::uint16_t>(rrset.signatures.size()));
  for (unsigned i = 0; i < form.ttl_octets(); ++i)
    *out++ = static_cast<std::uint8_t>(rrset.ttl.seconds >> (8 * i));
  return out;
}

/// Writes one RRset at `out`; a large RRset gets its block first.
Result<std::uint8_t*> put_rrset(shm::Transaction& transaction, std::uint8_t* out,
                                const RRsetDraft& rrset, const Measured& m) {
  out = put_header(out, rrset, m.header);
  if (m.shared) {
    out = put_varint(out, 0);
    out = store_unaligned(out, rrset.shared);
    return store_unaligned(out, static_cast<std::uint32_t>(m.data) | kSharedBit);
  }
  if (!m.external) {
    if (m.has_size()) out = put_varint(out, static_cast<std::uint32_t>(m.data));
    return put_data(out, rrset, m.form);
  }
  auto block = transaction.allocate(std::max<std::size_t>(m.data, 1));
  if (!block) return pass(block);
  put_data(reinterpret_cast<std::uint8_t*>(transaction.writable(*block)), rrset, m.form);
  out = put_varint(out, 0);
  out = store_unaligned(out, block->units);
  return store_unaligned(out, static_cast<std::uint32_t>(m.data));
}

/// Bytes with which an external block was allocated.
std::size_t external_bytes(const RawRRset& rrset) {
  return std::max<std::size_t>(rrset.data_bytes, 1);
}

/// Octets of the RRSIGs, which stand after the RDATAs; 0 when lengths lead out of the data.
std::size_t signature_bytes(const RawRRset& rrset) {
  if (rrset.signature_count == 0) return 0;
  const std::size_t fixed = dns::fixed_rdata_length(dns::RRType{rrset.type});
  const std::uint8_t* p = rrset.data;
  const std::uint8_t* end = p + rrset.data_bytes;
  for (unsigned i = 0; i < rrset.rdata_count; ++i) {
    std::uint32_t length = static_cast<std::uint32_t>(fixed);
    if (fixed == 0) p = get_varint(p, end, length);
    if (p == nullptr || static_cast<std::size_t>(end - p) < length) return 0;
    p += length;
  }
  return static_cast<std::size_t>(end - p);
}

struct RawRecord {
  const std::uint8_t* block = nullptr;
  const std::uint8_t* end = nullptr;  // of the window
};

RawRecord raw_record(const shm::Window& window, std::uint32_t ref) {
  const auto* header = window.at(shm::Ref<RecordHeader>{ref});
  if (header == nullptr) return {};
  const auto* block = reinterpret_cast<const std::uint8_t*>(header);
  return {block, block + window.room_after(block)};
}

/// Visits each RRset; false when the record is damaged. `after` is set to the end of the last
/// RRset.
template <class Visit>
bool visit_rrsets(const shm::Window& window, RawRecord record, const std::uint8_t*& after,
                  Visit&& visit) {
  const std::uint8_t* p = record.block == nullptr ? nullptr : first_rrset(record.block, record.end);
  for (unsigned i = 0; p != nullptr && i < record.block[2]; ++i) {
    RawRRset rrset;
    p = scan_rrset(p, record.end, window, rrset);
    if (p != nullptr) visit(rrset);
  }
  after = p;
  return p != nullptr;
}

}  // namespace

RRsetDraft* NameDraft::find(dns::RRType type) noexcept {
  for (RRsetDraft& rrset : rrsets)
    if (rrset.type == type) return &rrset;
  return nullptr;
}

const RRsetDraft* NameDraft::find(dns::RRType type) const noexcept {
  for (const RRsetDraft& rrset : rrsets)
    if (rrset.type == type) return &rrset;
  return nullptr;
}

RRsetDraft& NameDraft::at(dns::RRType type) {
  const auto place = std::lower_bound(
      rrsets.begin(), rrsets.end(), type,
      [](const RRsetDraft& rrset, dns::RRType wanted) { return rrset.type < wanted; });
  if (place != rrsets.end() && place->type == type) return *place;
  return *rrsets.insert(place, RRsetDraft{type, {}, {}, {}});
}

void NameDraft::drop_empty() {
  std::erase_if(rrsets, [](const RRsetDraft& rrset) {
    return rrset.rdatas.empty() && rrset.signatures.empty();
  });
}

std::uint64_t NameDraft::record_count() const noexcept {
  std::uint64_t count = 0;
  for (const RRsetDraft& rrset : rrsets) count += rrset.rdatas.size() + rrset.signatures.size();
  return count;
}

std::size_t normalise(RRsetDraft& rrset) {
  const std::size_t before = rrset.rdatas.size() + rrset.signatures.size();
  const auto tidy = [](std::vector<ByteView>& list, auto&& compare) {
    if (list.size() < 2) return;
    std::stable_sort(list.begin(), list.end(),
                     [&](ByteView a, ByteView b) { return compare(a, b) < 0; });
    list.erase(std::unique(list.begin(), list.end(),
                           [&](ByteView a, ByteView b) { return compare(a, b) == 0; }),
               list.end());
  };
  tidy(rrset.rdatas,
       [&](ByteView a, ByteView b) { return dns::compare_rdata_canonical(rrset.type, a, b); });
  tidy(rrset.signatures, [](ByteView a, ByteView b) {
    const int order = std::memcmp(a.data(), b.data(), std::min(a.size(), b.size()));
    return order != 0 ? order : static_cast<int>(a.size()) - static_cast<int>(b.size());
  });
  return before - rrset.rdatas.size() - rrset.signatures.size();
}

namespace {

/// Makes the views point to copies of the set's names, which stand in `names` one after the other.
void copy_names(const RRsetView& set, std::vector<ByteView>& rdatas,
                std::shared_ptr<const Bytes>& names) {
  auto copies = std::make_shared<Bytes>();
  std::vector<std::size_t> sizes;
  set.for_each_rdata([&](ByteView rdata) {
    append(*copies, rdata);
    sizes.push_back(rdata.size());
  });
  std::size_t at = 0;
  for (const std::size_t size : sizes) {
    rdatas.emplace_back(copies->data() + at, size);
    at += size;
  }
  names = std::move(copies);
}

}  // namespace

NameDraft decode_record(const RecordView& record) {
  NameDraft name;
  name.labels = record.relative_owner();
  name.rrsets.reserve(record.rrset_count() + 1);
  record.for_each_rrset([&](const RRsetView& view) {
    RRsetDraft& rrset = name.rrsets.emplace_back();
    rrset.type = view.type();
    rrset.ttl = view.ttl();
    rrset.rdatas.reserve(view.count() + std::size_t{1});
    if (rrset.type == kSharedType) rrset.shared = record.shared_set(rrset.type);
    if (view.has_whole_names())
      view.for_each_rdata([&](ByteView rdata) { rrset.rdatas.push_back(rdata); });
    else if (name.whole_names == nullptr)  // a second set of the type is damage
      copy_names(view, rrset.rdatas, name.whole_names);
    view.for_each_signature([&](ByteView rest) { rrset.signatures.push_back(rest); });
  });
  return name;
}

void pack_data(const RRsetDraft& rrset, Bytes& out) {
  const Form form(rrset.type, nullptr);
  out.resize(data_bytes(rrset, form));
  put_data(out.data(), rrset, form);
}

bool has_relative_form(const RRsetDraft& rrset, const OwnerName& owner) noexcept {
  return rrset.type == kRelativeType && std::ranges::any_of(rrset.rdatas, [&](ByteView rdata) {
           return is_relative(relative_form(rdata, owner));
         });
}

void refer_to_shared(const shm::Window& window, RRsetDraft& rrset, std::uint32_t shared) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(window.at(shm::Ref<>{shared}, 1));
  if (at == nullptr) return;
  const bool fixed = dns::fixed_rdata_length(rrset.type) != 0;
  for (ByteView& rdata : rrset.rdatas) {
    if (!fixed) at += varint_bytes(static_cast<std::uint32_t>(rdata.size()));
    rdata = {at, rdata.size()};
    at += rdata.size();
  }
  rrset.shared = shared;
}

Status check_sets(const NameDraft& name) {
  if (name.rrsets.size() > 255) return fail(Errc::kInvalid, "more than 255 types at one name");
  for (const RRsetDraft& rrset : name.rrsets) {
    if (rrset.rdatas.size() > kMaxRdataCount || rrset.signatures.size() > 0xFFFF)
      return fail(Errc::kInvalid, "more than {} records in one RRset", kMaxRdataCount);
    if (data_bytes(rrset, Form(rrset.type, nullptr)) >= kSharedBit)
      return fail(Errc::kInvalid, "an RRset of 2 GiB or more");
    // A name without an end would be taken for a name in relative form.
    if (rrset.type == kRelativeType && std::ranges::any_of(rrset.rdatas, is_relative))
      return fail(Errc::kInvalid, "the name of a server has no end");
  }
  return {};
}

Result<std::uint32_t> write_record(shm::Transaction& transaction, dns::NameView apex,
                                   const NameDraft& name) {
  if (auto sets = check_sets(name); !sets) return pass(sets);
  const OwnerName owner{name.labels, apex};
  std::size_t octets = sizeof(RecordHeader) + name.labels.size();
  const shm::Window window = transaction.window();
  for (const RRsetDraft& rrset : name.rrsets) octets += measure(window, rrset, owner).octets();
  auto ref = transaction.allocate(octets);
  if (!ref) return pass(ref);
  auto* out = reinterpret_cast<std::uint8_t*>(transaction.writable(*ref));
  *out++ = flags_of(name);
  *out++ = static_cast<std::uint8_t>(name.labels.size());
  *out++ = static_cast<std::uint8_t>(name.rrsets.size());
  out = put_octets(out, name.labels);
  for (const RRsetDraft& rrset : name.rrsets) {
    auto next = put_rrset(transaction, out, rrset, measure(window, rrset, owner));
    if (!next) return pass(next);
    out = *next;
  }
  return ref->units;
}

void release_record(shm::Transaction& transaction, std::uint32_t ref) {
  const shm::Window window = transaction.window();
  const RawRecord record = raw_record(window, ref);
  const std::uint8_t* after = nullptr;
  const bool whole = visit_rrsets(window, record, after, [&](const RawRRset& rrset) {
    if (rrset.external != 0) transaction.release(shm::Ref<>{rrset.external}, external_bytes(rrset));
  });
  if (whole) transaction.release(shm::Ref<>{ref}, static_cast<std::size_t>(after - record.block));
}

std::size_t stored_bytes(shm::Window window, std::uint32_t ref) noexcept {
  const RawRecord record = raw_record(window, ref);
  const std::uint8_t* after = nullptr;
  std::size_t octets = 0;
  if (!visit_rrsets(window, record, after, [&](const RawRRset& rrset) {
        if (rrset.external != 0) octets += shm::block_bytes(external_bytes(rrset));
      }))
    return 0;
  return octets + shm::block_bytes(static_cast<std::size_t>(after - record.block));
}

bool take_apart(shm::Window window, std::uint32_t ref, RecordParts& parts) {
  parts = RecordParts();
  const RawRecord record = raw_record(window, ref);
  const std::uint8_t* after = nullptr;
  std::size_t in_record = 0;
  if (!visit_rrsets(window, record, after, [&](const RawRRset& rrset) {
        if (rrset.shared() != 0) return;
        const std::size_t signatures = signature_bytes(rrset);
        parts.signatures += signatures;
        parts.rdata += rrset.data_bytes - signatures;
        if (rrset.external != 0)
          parts.external.emplace_back(rrset.external, external_bytes(rrset));
        else
          in_record += rrset.data_bytes;
      }))
    return false;
  parts.octets = static_cast<std::size_t>(after - record.block);
  parts.owner = sizeof(RecordHeader) + record.block[1];
  parts.headers = parts.octets - parts.owner - in_record;
  return true;
}

Result<std::uint32_t> relocate_record(shm::Transaction& transaction, std::uint32_t ref) {
  const shm::Window window = transaction.window();
  const RawRecord record = raw_record(window, ref);
  const std::uint8_t* after = nullptr;
  bool moves = transaction.in_victim(shm::Ref<>{ref});
  std::vector<std::pair<std::size_t, RawRRset>> large;  // place of each reference, and its set
  if (!visit_rrsets(window, record, after, [&](const RawRRset& rrset) {
        if (rrset.external == 0 || !transaction.in_victim(shm::Ref<>{rrset.external})) return;
        large.emplace_back(static_cast<std::size_t>(rrset.external_at - record.block), rrset);
        moves = true;
      }))
    return fail(Errc::kCorrupt, "name record is damaged");
  if (!moves) return ref;

  const auto octets = static_cast<std::size_t>(after - record.block);
  auto copy = transaction.allocate(octets);
  if (!copy) return pass(copy);
  auto* out = reinterpret_cast<std::uint8_t*>(transaction.writable(*copy));
  std::memcpy(out, record.block, octets);
  for (const auto& [at, rrset] : large) {
    auto block = transaction.allocate(external_bytes(rrset));
    if (!block) return pass(block);
    std::memcpy(transaction.writable(*block), rrset.data, rrset.data_bytes);
    store_unaligned(out + at, block->units);
    transaction.release(shm::Ref<>{rrset.external}, external_bytes(rrset));
  }
  transaction.release(shm::Ref<>{ref}, octets);
  return copy->units;
}

}  // namespace pando::zone
