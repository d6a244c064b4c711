#include "shm/image_format.h"

#include <xxhash.h>

namespace pando::shm {

namespace {

constexpr std::uint64_t kImageMagic = 0x50414E444F494D31U;   // "PANDOIM1"
constexpr std::uint64_t kChunksMagic = 0x50414E444F494D43U;  // "PANDOIMC"
constexpr std::size_t kFileAt = 40;
constexpr std::size_t kEntryBytes = 12;
constexpr std::size_t kSideBytes = 4 + std::size_t{kImageSideBytes};
constexpr std::size_t kChecksumBytes = 8;

constexpr std::size_t bytes_of(std::size_t chunks, std::size_t side) noexcept {
  return kImageHeadBytes + chunks * kEntryBytes + side * kSideBytes + kChecksumBytes;
}

void decode_chunks(const std::uint8_t* at, std::vector<ImageChunk>& chunks) {
  for (ImageChunk& chunk : chunks) {
    chunk = {load_be32(at), load_be32(at + 4), load_be32(at + 8)};
    at += kEntryBytes;
  }
}

void decode_side(const std::uint8_t* at, std::vector<ImageSide>& side) {
  for (ImageSide& part : side) {
    part.granule = load_be32(at);
    part.bytes.assign(at + 4, at + kSideBytes);
    at += kSideBytes;
  }
}

}  // namespace

//  0      8        12     16      24     40     48       56       64        72          76
//  | magic | version | root | layout | owner | file | written | state version | journal | chunks |
//  76     80              88        96
//  | side | configuration | lineage | count used checksum … | granule bytes … | checksum |
Bytes encode_image_index(const ImageIndex& index) {
  const ImageState& state = index.state;
  Bytes out;
  out.reserve(bytes_of(state.chunks.size(), state.side.size()));
  append_be64(out, kImageMagic);
  append_be32(out, kImageVersion);
  append_be32(out, state.root_block);
  append_be64(out, index.layout);
  for (const std::uint64_t half : index.owner) append_be64(out, half);
  append_be64(out, index.file);
  append_be64(out, index.written);
  append_be64(out, state.version);
  append_be64(out, state.journal_position);
  append_be32(out, static_cast<std::uint32_t>(state.chunks.size()));
  append_be32(out, static_cast<std::uint32_t>(state.side.size()));
  append_be64(out, index.configuration);
  append_be64(out, state.lineage);
  for (const ImageChunk& chunk : state.chunks) {
    append_be32(out, chunk.count);
    append_be32(out, chunk.used);
    append_be32(out, chunk.checksum);
  }
  for (const ImageSide& part : state.side) {
    append_be32(out, part.granule);
    append(out, part.bytes);
  }
  append_be64(out, XXH3_64bits(out.data(), out.size()));
  return out;
}

bool looks_like_image_index(ByteView head) noexcept {
  return head.size() >= kImageMagicBytes && load_be64(head.data()) == kImageMagic;
}

Result<ImageIndex> decode_image_head(ByteView bytes) {
  if (bytes.size() < kImageHeadBytes || !looks_like_image_index(bytes))
    return fail(Errc::kCorrupt, "not an image of a zone store");
  const std::uint8_t* at = bytes.data();
  if (const std::uint32_t version = load_be32(at + 8); version != kImageVersion)
    return fail(Errc::kLayout, "an image of version {}, this build reads version {}", version,
                kImageVersion);
  ImageIndex index;
  index.state.root_block = load_be32(at + 12);
  index.layout = load_be64(at + 16);
  index.owner = {load_be64(at + 24), load_be64(at + 32)};
  index.file = load_be64(at + kFileAt);
  index.written = load_be64(at + 48);
  index.state.version = load_be64(at + 56);
  index.state.journal_position = load_be64(at + 64);
  index.configuration = load_be64(at + 80);
  index.state.lineage = load_be64(at + 88);
  return index;
}

Result<ImageIndex> decode_image_index(ByteView bytes) {
  if (bytes.size() < bytes_of(0, 0) || !looks_like_image_index(bytes))
    return fail(Errc::kCorrupt, "not an image of a zone store");
  const ByteView covered = bytes.first(bytes.size() - kChecksumBytes);
  if (XXH3_64bits(covered.data(), covered.size()) != load_be64(bytes.data() + covered.size()))
    return fail(Errc::kCorrupt, "the image's index has a wrong checksum");
  auto index = decode_image_head(bytes);
  if (!index) return index;
  const std::uint8_t* at = bytes.data();
  const std::uint32_t chunks = load_be32(at + 72);
  const std::uint32_t side = load_be32(at + 76);
  if (bytes_of(chunks, side) != bytes.size())
    return fail(Errc::kCorrupt, "the image's index is cut off");
  index->state.chunks.resize(chunks);
  index->state.side.resize(side);
  decode_chunks(at + kImageHeadBytes, index->state.chunks);
  decode_side(at + kImageHeadBytes + chunks * kEntryBytes, index->state.side);
  return index;
}

std::optional<std::uint64_t> image_file_of(ByteView head) noexcept {
  if (head.size() < kFileAt + 8 || !looks_like_image_index(head)) return std::nullopt;
  return load_be64(head.data() + kFileAt);
}

Bytes encode_image_chunks_head(std::uint64_t file) {
  Bytes head(kImageChunksHeadBytes);
  store_be64(head.data(), kChunksMagic);
  store_be64(head.data() + 8, file);
  return head;
}

std::string image_chunks_path(const std::string& path, std::uint64_t file) {
  return fmt::format("{}.{:016x}", path, file);
}

std::uint64_t image_chunks_bytes(const ImageState& state) noexcept {
  for (auto number = static_cast<std::uint32_t>(state.chunks.size()); number-- > 0;)
    if (state.chunks[number].count != 0)
      return image_chunk_offset(number) + state.chunks[number].used;
  return kImageChunksHeadBytes;
}

}  // namespace pando::shm
