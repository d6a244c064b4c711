#include "ipc/frame_stream.h"

#include <algorithm>

namespace pando::ipc {

namespace {

constexpr std::uint32_t kContentTypeField = 1;
constexpr std::size_t kTypeOctets = 4;
constexpr std::size_t kFieldHeaderOctets = 8;

void append_text(Bytes& out, std::string_view text) {
  out.insert(out.end(), text.begin(), text.end());
}

bool is_text(ByteView octets, std::string_view text) {
  const auto same = [](std::uint8_t octet, char c) {
    return octet == static_cast<std::uint8_t>(c);
  };
  return std::equal(octets.begin(), octets.end(), text.begin(), text.end(), same);
}

}  // namespace

Bytes control_frame(FrameControl type, std::string_view content_type) {
  const std::size_t field = content_type.empty() ? 0 : kFieldHeaderOctets + content_type.size();
  Bytes frame;
  append_be32(frame, 0);
  append_be32(frame, static_cast<std::uint32_t>(kTypeOctets + field));
  append_be32(frame, static_cast<std::uint32_t>(type));
  if (content_type.empty()) return frame;
  append_be32(frame, kContentTypeField);
  append_be32(frame, static_cast<std::uint32_t>(content_type.size()));
  append_text(frame, content_type);
  return frame;
}

Result<std::size_t> control_frame_size(ByteView octets) {
  if (octets.size() < kFrameHeaderOctets) return 0;
  if (load_be32(octets.data()) != 0)
    return fail(Errc::kInvalid, "the collector sent no control frame");
  if (octets.size() < 2 * kFrameHeaderOctets) return 0;
  const std::size_t length = load_be32(octets.data() + kFrameHeaderOctets);
  if (length < kTypeOctets || length > kMaxControlOctets)
    return fail(Errc::kInvalid, "the collector sent a control frame of {} octets", length);
  return 2 * kFrameHeaderOctets + length;
}

Status check_accept(ByteView frame, std::string_view content_type) {
  auto size = control_frame_size(frame);
  if (!size) return pass(size);
  if (*size != frame.size()) return fail(Errc::kTruncated, "the control frame is not whole");
  ByteView rest = frame.subspan(2 * kFrameHeaderOctets);
  const std::uint32_t type = load_be32(rest.data());
  if (type != static_cast<std::uint32_t>(FrameControl::kAccept))
    return fail(Errc::kInvalid, "the collector sent control frame {}, not ACCEPT", type);
  rest = rest.subspan(kTypeOctets);
  bool accepts_any = true;  // without a content type the reader takes all
  while (!rest.empty()) {
    if (rest.size() < kFieldHeaderOctets || load_be32(rest.data()) != kContentTypeField)
      return fail(Errc::kInvalid, "the collector's ACCEPT has a malformed field");
    const std::size_t length = load_be32(rest.data() + 4);
    rest = rest.subspan(kFieldHeaderOctets);
    if (length > rest.size())
      return fail(Errc::kInvalid, "the collector's ACCEPT has a field that is cut");
    if (is_text(rest.first(length), content_type)) return {};
    accepts_any = false;
    rest = rest.subspan(length);
  }
  if (!accepts_any) return fail(Errc::kDenied, "the collector does not take {}", content_type);
  return {};
}

}  // namespace pando::ipc
