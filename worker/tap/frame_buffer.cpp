#include "worker/tap/frame_buffer.h"

#include <algorithm>

#include "ipc/frame_stream.h"

namespace pando::worker {

FrameBuffer::FrameBuffer(std::size_t most, Form form)
    : most_(most),
      form_(form),
      header_(form == Form::kLengths ? ipc::kFrameHeaderOctets : 0),
      octets_(2 * most) {}

bool FrameBuffer::push(std::initializer_list<ByteView> parts) {
  std::size_t length = 0;
  for (const ByteView part : parts) length += part.size();
  const std::size_t octets = header_ + length;
  if (end_ - frame_begin_ + octets > most_) return false;
  if (end_ + octets > octets_.size()) {
    // At least `most_` octets have been taken since the last move.
    std::copy(octets_.begin() + static_cast<std::ptrdiff_t>(frame_begin_),
              octets_.begin() + static_cast<std::ptrdiff_t>(end_), octets_.begin());
    begin_ -= frame_begin_;
    end_ -= frame_begin_;
    frame_begin_ = 0;
  }
  if (form_ == Form::kLengths)
    store_be32(octets_.data() + end_, static_cast<std::uint32_t>(length));
  end_ += header_;
  for (const ByteView part : parts) {
    std::copy(part.begin(), part.end(), octets_.begin() + static_cast<std::ptrdiff_t>(end_));
    end_ += part.size();
  }
  ++frames_;
  return true;
}

/// Octets of the first frame, which is there.
std::size_t FrameBuffer::first_size() const noexcept {
  const std::uint8_t* first = octets_.data() + frame_begin_;
  if (form_ == Form::kLengths) return header_ + load_be32(first);
  const std::uint8_t* end = octets_.data() + end_;
  return static_cast<std::size_t>(std::find(first, end, '\n') - first) + 1;
}

ByteView FrameBuffer::waiting() const noexcept {
  return ByteView(octets_).subspan(begin_, end_ - begin_);
}

std::size_t FrameBuffer::take(std::size_t octets) noexcept {
  begin_ += octets;
  std::size_t taken = 0;
  while (frames_ > 0) {
    const std::size_t size = first_size();
    if (frame_begin_ + size > begin_) break;
    frame_begin_ += size;
    --frames_;
    ++taken;
  }
  if (frames_ == 0) clear();
  return taken;
}

void FrameBuffer::clear() noexcept { frame_begin_ = begin_ = end_ = frames_ = 0; }

}  // namespace pando::worker
