#include "worker/tap/dnstap_writer.h"

#include <algorithm>
#include <utility>

#include "dns/message/message.h"
#include "ipc/frame_stream.h"

namespace pando::worker {

DnstapWriter::DnstapWriter(asio::io_context& io, Calls calls)
    : sender_(io, FrameBuffer::Form::kLengths, std::move(calls)) {}

void DnstapWriter::set(ipc::Dnstap settings, Fd stream) {
  settings_ = std::move(settings);
  settings_.sample = std::max(settings_.sample, std::uint32_t{1});
  if (!settings_.on) {
    end();
    sender_.release();
    return;
  }
  prefix_ = dnstap_prefix(settings_.identity, settings_.version);
  if (!stream) return;
  end();
  sender_.open(std::move(stream));
}

bool DnstapWriter::wants(DnstapType type) const noexcept {
  if (is_update(type)) return settings_.updates;
  return is_response(type) ? settings_.responses : settings_.queries;
}

/// False for a response, and for a message shorter than a header.
bool DnstapWriter::takes(ByteView request) noexcept {
  if (request.size() < dns::kHeaderOctets) return false;
  const DnstapType type = dnstap_type(request);
  if (is_response(type) || !(wants(type) || wants_response(request))) return false;
  if (++requests_ < settings_.sample) return false;
  requests_ = 0;
  return true;
}

bool DnstapWriter::wants_response(ByteView request) const noexcept {
  return is_update(dnstap_type(request)) ? settings_.updates : settings_.responses;
}

void DnstapWriter::write(const Exchange& exchange, ByteView message, const timespec& sent) {
  if (!settings_.on || message.size() < dns::kHeaderOctets || !wants(dnstap_type(message))) return;
  if (!sender_.is_open()) return sender_.drop();
  put_dnstap_head(exchange, message, sent, head_);
  sender_.push({prefix_, head_, message});
}

void DnstapWriter::end() { sender_.end(ipc::control_frame(ipc::FrameControl::kStop, {})); }

}  // namespace pando::worker
