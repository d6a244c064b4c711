#include "manager/image_format.h"

#include <xxhash.h>

#include "shm/image.h"

namespace pando::manager {

namespace {

constexpr std::uint64_t kImageMagic = 0x50414E444F494D31U;  // "PANDOIM1"
constexpr std::size_t kHeadOctets = kImageHeadOctets;
constexpr std::size_t kChunkOctets = 12;
constexpr std::size_t kSideOctets = 4 + std::size_t{shm::kImageSideOctets};
constexpr std::size_t kChecksumOctets = 8;

void append_be64(Bytes& out, std::uint64_t value) {
  append_be32(out, static_cast<std::uint32_t>(value >> 32));
  append_be32(out, static_cast<std::uint32_t>(value));
}

std::size_t octets_of(std::size_t chunks, std::size_t side) noexcept {
  return kHeadOctets + chunks * kChunkOctets + side * kSideOctets + kChecksumOctets;
}

void decode_chunks(const std::uint8_t* at, std::vector<shm::ImageChunk>& chunks) {
  for (shm::ImageChunk& chunk : chunks) {
    chunk = {load_be32(at), load_be32(at + 4), load_be32(at + 8)};
    at += kChunkOctets;
  }
}

void decode_side(const std::uint8_t* at, std::vector<shm::ImageSide>& side) {
  for (shm::ImageSide& part : side) {
    part.granule = load_be32(at);
    part.octets.assign(at + 4, at + kSideOctets);
    at += kSideOctets;
  }
}

}  // namespace

//  0      8        12     16      24     40     48       56       64        72          76
//  | magic | version | root | layout | owner | file | written | state version | journal | chunks |
//  76     80         88
//  | side | configuration | count used checksum … | granule octets … | checksum of all before |
Bytes encode_image_index(const ImageIndex& index) {
  const shm::ImageState& state = index.state;
  Bytes out;
  out.reserve(octets_of(state.chunks.size(), state.side.size()));
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
  for (const shm::ImageChunk& chunk : state.chunks) {
    append_be32(out, chunk.count);
    append_be32(out, chunk.used);
    append_be32(out, chunk.checksum);
  }
  for (const shm::ImageSide& part : state.side) {
    append_be32(out, part.granule);
    append(out, part.octets);
  }
  append_be64(out, XXH3_64bits(out.data(), out.size()));
  return out;
}

bool looks_like_image_index(ByteView head) noexcept {
  return head.size() >= kImageMagicOctets && load_be64(head.data()) == kImageMagic;
}

Result<ImageIndex> decode_image_head(ByteView bytes) {
  if (bytes.size() < kHeadOctets || load_be64(bytes.data()) != kImageMagic)
    return fail(Errc::kCorrupt, "not an image of a zone store");
  const std::uint8_t* at = bytes.data();
  if (const std::uint32_t version = load_be32(at + 8); version != kImageVersion)
    return fail(Errc::kLayout, "an image of version {}, this build reads {}", version,
                kImageVersion);
  ImageIndex index;
  index.state.root_block = load_be32(at + 12);
  index.layout = load_be64(at + 16);
  index.owner = {load_be64(at + 24), load_be64(at + 32)};
  index.file = load_be64(at + 40);
  index.written = load_be64(at + 48);
  index.state.version = load_be64(at + 56);
  index.state.journal_position = load_be64(at + 64);
  index.configuration = load_be64(at + 80);
  return index;
}

Result<ImageIndex> decode_image_index(ByteView bytes) {
  if (bytes.size() < octets_of(0, 0) || load_be64(bytes.data()) != kImageMagic)
    return fail(Errc::kCorrupt, "not an image of a zone store");
  const ByteView covered = bytes.first(bytes.size() - kChecksumOctets);
  if (XXH3_64bits(covered.data(), covered.size()) != load_be64(bytes.data() + covered.size()))
    return fail(Errc::kCorrupt, "the image's index has a wrong checksum");
  auto index = decode_image_head(bytes);
  if (!index) return index;
  const std::uint8_t* at = bytes.data();
  const std::uint32_t chunks = load_be32(at + 72);
  const std::uint32_t side = load_be32(at + 76);
  if (octets_of(chunks, side) != bytes.size())
    return fail(Errc::kCorrupt, "the image's index is cut off");
  index->state.chunks.resize(chunks);
  index->state.side.resize(side);
  decode_chunks(at + kHeadOctets, index->state.chunks);
  decode_side(at + kHeadOctets + chunks * kChunkOctets, index->state.side);
  return index;
}

}  // namespace pando::manager
