#include "zone/history/history.h"

#include <algorithm>

#include "dns/field_reader.h"
#include "zone/record/record_codec.h"
#include "zone/trie/stored_settings.h"
#include "zone/trie/trie_edit.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

constexpr std::uint8_t kLastPiece = 1;  // flags of a piece
constexpr std::uint8_t kComesIn = 1;    // flags of a record
constexpr std::uint8_t kSameOwner = 2;
constexpr std::size_t kPieceHeader = 9;
/// Flags, length of the owner, type and TTL.
constexpr std::size_t kRecordHead = 8;
constexpr std::uint32_t kMaxPieces = 1U << 16;

/// The label under which a piece is found: serial, then number of the piece.
using Key = HexLabel<12>;

Key key_of(dns::Serial from, std::uint32_t piece) noexcept {
  return Key(std::uint64_t{from.value} << 16 | (piece & 0xFFFF));
}

LeafBlock find_piece(const shm::Window& window, std::uint32_t history, const Key& key) noexcept {
  return Trie(window, history, LeafKind::kRecord).find(TrieKey(key.labels()), key.labels());
}

/// The RDATAs of a piece; empty when it is damaged.
std::vector<ByteView> piece_rdatas(const shm::Window& window, std::uint32_t ref) {
  std::vector<ByteView> rdatas;
  const RecordView record = record_view(window, ref, dns::NameView());
  if (!record) return rdatas;
  const RRsetView set = record.find(kHistoryType);
  if (!set) return rdatas;
  rdatas.reserve(set.count());
  set.for_each_rdata([&](ByteView rdata) { rdatas.push_back(rdata); });
  if (!rdatas.empty() && rdatas.front().size() < kPieceHeader) rdatas.clear();
  return rdatas;
}

struct PieceHeader {
  bool last = false;
  dns::Serial to;
  std::uint32_t records_before = 0;
};

PieceHeader read_header(ByteView rdata) noexcept {
  return {(rdata[0] & kLastPiece) != 0, {load_be32(rdata.data() + 1)}, load_be32(rdata.data() + 5)};
}

/// Calls `visit(record, comes_in)` in the order of RFC 1995 §4. Stops at the first error.
template <class Visit>
Status visit_in_order(const Changeset& changeset, Visit&& visit) {
  const auto is_soa = [&](const Record& record) {
    return record.type == dns::RRType::kSOA && record.owner == changeset.zone;
  };
  for (const bool comes_in : {false, true})
    for (const bool soa : {true, false})
      for (const Record& record : comes_in ? changeset.added : changeset.removed)
        if (is_soa(record) == soa)
          if (auto visited = visit(record, comes_in); !visited) return visited;
  return {};
}

}  // namespace

// Reading
// ----------------------------------------------------------------------------------------

std::optional<HistoryReader> HistoryReader::from(const ZoneView& zone, dns::Serial serial) {
  if (!zone || !zone.loaded() || zone.entry_->history == 0) return std::nullopt;
  HistoryReader reader(zone, serial);
  if (!reader.load_piece()) return std::nullopt;
  return reader;
}

std::optional<HistoryReader> HistoryReader::from_oldest(const ZoneView& zone) {
  if (!zone || !zone.loaded() || zone.entry_->history == 0) return std::nullopt;
  return from(zone, dns::Serial{zone.entry_->history_first});
}

bool HistoryReader::load_piece() {
  if (piece_ >= kMaxPieces) return false;
  const LeafBlock leaf = find_piece(zone_.window_, zone_.entry_->history, key_of(serial_, piece_));
  rdatas_ = leaf ? piece_rdatas(zone_.window_, leaf.ref.units) : std::vector<ByteView>();
  if (rdatas_.size() < 2) return false;  // each piece has a record, so the loop ends
  const PieceHeader header = read_header(rdatas_.front());
  if (piece_ == 0) {
    to_ = header.to;
    left_ = zone_.entry_->history_records - header.records_before;
    author_ = rdatas_.front().subspan(kPieceHeader);
  } else if (!(header.to == to_)) {
    return false;
  }
  last_piece_ = header.last;
  ++piece_;
  at_ = 1;
  return to_.ahead_of(serial_);
}

Author HistoryReader::author() const {
  dns::FieldReader fields(author_);
  return take_author(fields);
}

const HistoryRecord* HistoryReader::next() {
  if (damaged_) return nullptr;
  while (at_ == rdatas_.size()) {
    if (last_piece_) {
      serial_ = to_;
      piece_ = 0;
    }
    if (last_piece_ && serial_ == zone_.serial()) {
      damaged_ = left_ != 0;
      return nullptr;
    }
    const std::uint32_t left = left_;
    damaged_ = !load_piece() || left_ != left;
    if (damaged_) return nullptr;
  }
  damaged_ = left_ == 0 || !take_record(rdatas_[at_++]);
  if (damaged_) return nullptr;
  --left_;
  return &record_;
}

bool HistoryReader::take_record(ByteView rdata) {
  dns::FieldReader fields(rdata);
  const std::uint8_t flags = fields.u8();
  const ByteView labels = fields.octets(fields.u8());
  record_.type = static_cast<dns::RRType>(fields.u16());
  record_.ttl = {fields.u32()};
  if (!fields.ok()) return false;
  if ((flags & kSameOwner) == 0) {
    auto owner = are_labels(labels) ? dns::Name::join(labels, zone_.apex())
                                    : Result<dns::Name>(fail(Errc::kCorrupt, "damaged labels"));
    if (!owner) return false;
    owner_ = *owner;
  } else if (at_ <= 2) {
    return false;  // a piece names the owner of its first record
  }
  record_.added = (flags & kComesIn) != 0;
  record_.owner = owner_.view();
  record_.rdata = fields.left();
  return true;
}

std::uint64_t history_bytes(const ZoneView& zone, dns::Serial from, dns::Serial to) {
  const shm::Window& window = zone.window_;
  std::uint64_t octets = 0;
  std::uint32_t piece = 0;
  // Damage may lead in circles: the sum must not exceed the counted bytes.
  while (!(from == to) && octets <= zone.entry_->history_bytes) {
    const LeafBlock leaf = find_piece(window, zone.entry_->history, key_of(from, piece++));
    const std::vector<ByteView> rdatas =
        leaf ? piece_rdatas(window, leaf.ref.units) : std::vector<ByteView>();
    if (rdatas.empty()) break;
    octets += stored_bytes(window, leaf.ref.units);
    const PieceHeader header = read_header(rdatas.front());
    if (!header.last) continue;
    from = header.to;
    piece = 0;
  }
  return octets;
}

// Writing
// ----------------------------------------------------------------------------------------

/// Packs records into pieces and writes the pieces to the store.
class HistoryEditor::Pieces {
 public:
  Pieces(HistoryEditor& editor, const Changeset& changeset, dns::Serial from, dns::Serial to)
      : editor_(editor),
        zone_(changeset.zone),
        author_(changeset.author),
        from_(from),
        to_(to),
        records_before_(editor.entry_.history_records) {}

  Status add(const Record& record, bool comes_in) {
    if (octets_ >= kHistoryPieceBytes || records_.size() + 1 >= kMaxRdataCount)
      if (auto put = put_piece(false); !put) return put;
    const bool same = !records_.empty() && record.owner.view().bytes().size() == owner_.size() &&
                      std::equal(owner_.begin(), owner_.end(), record.owner.data());
    owner_ = record.owner.view().bytes();
    const ByteView labels = same ? ByteView() : relative_labels(record.owner, zone_);
    Bytes& out = records_.emplace_back();
    out.reserve(kRecordHead + labels.size() + record.rdata.size());
    out.push_back(static_cast<std::uint8_t>((comes_in ? kComesIn : 0) | (same ? kSameOwner : 0)));
    out.push_back(static_cast<std::uint8_t>(labels.size()));
    pando::append(out, labels);
    append_be16(out, static_cast<std::uint16_t>(record.type));
    append_be32(out, record.ttl.seconds);
    pando::append(out, record.rdata);
    octets_ += out.size();
    ++editor_.entry_.history_records;
    return {};
  }

  Status put_piece(bool last) {
    if (piece_ >= kMaxPieces) return fail(Errc::kFull, "a changeset of more than a gibibyte");
    Bytes header{last ? kLastPiece : std::uint8_t{0}};
    append_be32(header, to_.value);
    append_be32(header, records_before_);
    if (piece_ == 0) put_author(header, author_);
    const Key key = key_of(from_, piece_++);
    NameDraft leaf;
    leaf.labels = key.labels();
    RRsetDraft& set = leaf.at(kHistoryType);
    set.rdatas.emplace_back(header);
    set.rdatas.insert(set.rdatas.end(), records_.begin(), records_.end());
    auto ref = write_record(editor_.transaction_, dns::NameView(), leaf);
    if (!ref) return pass(ref);
    records_.clear();
    octets_ = 0;
    return editor_.put_piece(*ref, key.labels());
  }

 private:
  HistoryEditor& editor_;
  const dns::Name& zone_;
  const Author& author_;
  dns::Serial from_;
  dns::Serial to_;
  std::uint32_t records_before_;
  std::uint32_t piece_ = 0;
  std::vector<Bytes> records_;
  std::size_t octets_ = 0;
  ByteView owner_;  // of the last record
};

std::uint64_t HistoryEditor::bytes_of(const Changeset& changeset) noexcept {
  std::uint64_t octets = 0;
  for (const auto* list : {&changeset.removed, &changeset.added})
    for (const Record& record : *list)
      octets += kRecordHead + record.owner.size() + record.rdata.size();
  return octets;
}

bool HistoryEditor::has(dns::Serial from) const {
  return static_cast<bool>(find_piece(transaction_.window(), entry_.history, key_of(from, 0)));
}

Status HistoryEditor::append(const Changeset& changeset, dns::Serial from, dns::Serial to) {
  if (entry_.history == 0) entry_.history_first = from.value;
  Pieces pieces(*this, changeset, from, to);
  auto added = visit_in_order(
      changeset, [&](const Record& record, bool comes_in) { return pieces.add(record, comes_in); });
  return added ? pieces.put_piece(true) : added;
}

Status HistoryEditor::put_piece(std::uint32_t ref, ByteView labels) {
  const std::size_t octets = stored_bytes(transaction_.window(), ref);
  auto trie = trie_put(transaction_, entry_.history, LeafKind::kRecord, TrieKey(labels), ref);
  if (!trie) return pass(trie);
  entry_.history = *trie;
  entry_.history_bytes += octets;
  root_.history_bytes += octets;
  return {};
}

Status HistoryEditor::trim(std::uint64_t octets, std::size_t changesets,
                           std::optional<dns::Serial> stop_at) {
  const auto may_go = [&] {
    return entry_.history != 0 && !(stop_at && entry_.history_first == stop_at->value);
  };
  for (; entry_.history_bytes > octets && may_go() && changesets > 0; --changesets)
    if (auto dropped = drop_oldest(); !dropped) return dropped;
  return {};
}

Status HistoryEditor::drop_oldest() {
  const shm::Window window = transaction_.window();
  const dns::Serial from{entry_.history_first};
  for (std::uint32_t piece = 0;; ++piece) {
    const Key key = key_of(from, piece);
    const LeafBlock leaf = find_piece(window, entry_.history, key);
    const std::vector<ByteView> rdatas =
        leaf ? piece_rdatas(window, leaf.ref.units) : std::vector<ByteView>();
    if (rdatas.empty()) return fail(Errc::kCorrupt, "change history is damaged");
    const PieceHeader header = read_header(rdatas.front());
    const std::uint64_t octets = stored_bytes(window, leaf.ref.units);
    auto trie = trie_remove(transaction_, entry_.history, LeafKind::kRecord, TrieKey(key.labels()));
    if (!trie) return pass(trie);
    release_record(transaction_, leaf.ref.units);
    entry_.history = *trie;
    entry_.history_bytes -= std::min(entry_.history_bytes, octets);
    root_.history_bytes -= std::min(root_.history_bytes, octets);
    entry_.history_first = header.to.value;
    if (header.last) return {};
  }
}

}  // namespace pando::zone
