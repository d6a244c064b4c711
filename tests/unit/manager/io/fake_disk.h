#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "manager/io/store_file.h"

namespace pando::manager::testing {

/// A model of a disk with a page cache: what was synced survives power_cut(), of the rest any part
/// may, sector by sector and in any order. `fail` makes chosen calls fail.
class FakeDisk final : public Files {
 public:
  enum class Call {
    kOpen,
    kRead,
    kWrite,
    kSync,
    kPreallocate,
    kTruncate,
    kRename,
    kRemove,
    kSyncDirectory,
    kSyncGroup,
    kList
  };
  /// Asked before each call; returns the error the call shall give, or nothing.
  std::function<Status(Call, const std::string& path)> fail = [](Call, const std::string&) {
    return Status();
  };
  /// Asked before each read; true: a byte of [from, to) cannot be read.
  std::function<bool(const std::string& path, std::uint64_t from, std::uint64_t to)> unreadable;
  std::map<Call, int> calls;
  /// A rename reaches the disk whole or not at all, as file systems with a journal have it; else
  /// its halves are lost one by one.
  bool whole_renames = false;
  /// There is a sync of all files.
  bool syncs_groups = true;
  /// A write that fails has written its first half, about; else nothing, as when the host ends
  /// before it.
  bool half_writes = true;
  /// Bytes that reach the disk together; each power cut takes one of these.
  std::vector<std::size_t> sectors = {64, 512};

  Result<std::unique_ptr<StoreFile>> open(const std::string& path, OpenMode mode) override {
    if (auto asked = ask(Call::kOpen, path); !asked) return pass(asked);
    auto& node = names_[path];
    if (mode == OpenMode::kCreate || mode == OpenMode::kSecret) {
      node = std::make_shared<Node>();
      unsynced_names_.push_back({{path, node}});
    }
    if (!node) {
      names_.erase(path);
      return ::pando::fail(Errc::kNotFound, "{}: no such file", path);
    }
    return std::unique_ptr<StoreFile>(std::make_unique<Handle>(*this, path, node));
  }
  Status rename(const std::string& from, const std::string& to) override {
    if (auto asked = ask(Call::kRename, from); !asked) return asked;
    const auto node = names_.at(from);
    names_[to] = node;
    names_.erase(from);
    unsynced_names_.push_back({{to, node}, {from, nullptr}});
    return {};
  }
  Status remove(const std::string& path) override {
    if (auto asked = ask(Call::kRemove, path); !asked) return asked;
    if (names_.erase(path) != 0) unsynced_names_.push_back({{path, nullptr}});
    return {};
  }
  Status sync_directory(const std::string& directory) override {
    if (auto asked = ask(Call::kSyncDirectory, directory); !asked) return asked;
    const auto is_in = [&](const NameStep& step) {
      return step.front().first.starts_with(directory + "/");
    };
    for (const NameStep& step : unsynced_names_)
      for (const auto& [path, node] : step)
        if (is_in(step)) make_durable(path, node);
    std::erase_if(unsynced_names_, is_in);
    return {};
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    if (auto asked = ask(Call::kList, directory); !asked) return pass(asked);
    std::vector<std::string> found;
    for (const auto& [path, node] : names_)
      if (path.starts_with(directory + "/")) found.push_back(path.substr(directory.size() + 1));
    return found;
  }
  Status make_directory(const std::string&) override { return {}; }
  Result<std::unique_ptr<GroupSync>> begin_group(const std::string& directory) override {
    if (!syncs_groups) return Files::begin_group(directory);
    return std::unique_ptr<GroupSync>(std::make_unique<Group>(*this, directory));
  }

  /// The machine loses power: unsynced writes and names survive at random.
  void power_cut(std::mt19937_64& random) {
    // Most of it, hardly any, or half: what is rare in a mixture is tried, too.
    const std::uint64_t kept_of_8 = std::array{0U, 1U, 4U, 4U, 7U, 8U}[random() % 6];
    const auto survives = [&] { return random() % 8 < kept_of_8; };
    for (const NameStep& step : unsynced_names_) {
      const bool whole = survives();
      for (const auto& [path, node] : step)
        if (whole_renames ? whole : survives()) make_durable(path, node);
    }
    names_ = durable_names_;
    unsynced_names_.clear();
    const std::size_t sector = sectors[random() % sectors.size()];
    for (auto& [path, node] : names_) node->lose_unsynced(random, sector, survives);
  }

  /// A byte of the medium changes by itself, under what was synced.
  void damage(const std::string& path, std::uint64_t at, std::uint8_t byte) {
    Node& node = *names_.at(path);
    node.bytes[at] = byte;
    if (at < node.durable.size()) node.durable[at] = byte;
  }
  Bytes& contents(const std::string& path) { return names_.at(path)->bytes; }
  [[nodiscard]] bool has(const std::string& path) const { return names_.contains(path); }
  /// What a test wants to know of a file, whatever its name becomes.
  std::int64_t& stamp(const std::string& path) { return names_.at(path)->stamp; }
  std::vector<std::string> paths() const {
    std::vector<std::string> all;
    for (const auto& [path, node] : names_) all.push_back(path);
    return all;
  }

 private:
  struct Node {
    Bytes bytes;    // as programs see them
    Bytes durable;  // as of the last sync
    struct Change {
      std::uint64_t offset = 0;
      Bytes bytes;
      std::optional<std::uint64_t> size{};  // set: the file's length, and no bytes
    };
    std::vector<Change> unsynced;
    std::int64_t stamp = 0;

    void put(std::uint64_t offset, ByteView data) {
      if (bytes.size() < offset + data.size()) bytes.resize(offset + data.size());
      std::copy(data.begin(), data.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    void resize(std::uint64_t size) {
      bytes.resize(size);
      unsynced.push_back({0, {}, size});
    }
    void sync(bool succeeds) {
      if (succeeds) durable = bytes;
      unsynced.clear();  // as Linux does: the pages count as clean, the disk has not got them
    }
    template <class Survives>
    void lose_unsynced(std::mt19937_64& random, std::size_t sector, const Survives& survives) {
      std::vector<Change> pieces;
      for (const Change& change : unsynced) {
        if (change.size && survives()) pieces.push_back(change);
        for (std::size_t at = 0, length = 0; at < change.bytes.size(); at += length) {
          length = std::min(sector - (change.offset + at) % sector, change.bytes.size() - at);
          const ByteView piece = ByteView(change.bytes).subspan(at, length);
          if (survives()) pieces.push_back({change.offset + at, {piece.begin(), piece.end()}, {}});
        }
      }
      std::shuffle(pieces.begin(), pieces.end(), random);
      bytes = durable;
      for (const Change& piece : pieces)
        if (piece.size)
          bytes.resize(*piece.size);
        else
          put(piece.offset, piece.bytes);
      unsynced.clear();
      durable = bytes;
    }
  };

  class Handle final : public StoreFile {
    /// Media write pieces of 64 bytes or more as a whole.
    static std::size_t half_of(std::uint64_t offset, std::size_t bytes) {
      const std::uint64_t end = (offset + bytes / 2) / 64 * 64;
      return end > offset ? end - offset : 0;
    }

   public:
    Handle(FakeDisk& disk, std::string path, std::shared_ptr<Node> node)
        : disk_(disk), path_(std::move(path)), node_(std::move(node)) {}
    Status write_at(std::uint64_t offset, ByteView bytes) override {
      auto asked = disk_.ask(Call::kWrite, path_);
      if (!asked) bytes = bytes.first(disk_.half_writes ? half_of(offset, bytes.size()) : 0);
      node_->put(offset, bytes);
      node_->unsynced.push_back({offset, Bytes(bytes.begin(), bytes.end()), {}});
      return asked;
    }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
      if (auto asked = disk_.ask(Call::kRead, path_); !asked) return pass(asked);
      if (disk_.unreadable && disk_.unreadable(path_, offset, offset + out.size()))
        return ::pando::fail(Errc::kIo, "unreadable");
      if (offset >= node_->bytes.size()) return std::size_t{0};
      const std::size_t n = std::min<std::size_t>(out.size(), node_->bytes.size() - offset);
      std::copy_n(node_->bytes.begin() + static_cast<std::ptrdiff_t>(offset), n, out.begin());
      return n;
    }
    Status sync() override {
      const Status asked = disk_.ask(Call::kSync, path_);
      node_->sync(asked.has_value());
      return asked;
    }
    Status preallocate(std::uint64_t bytes) override {
      if (auto asked = disk_.ask(Call::kPreallocate, path_); !asked) return asked;
      node_->resize(bytes);
      return {};
    }
    Status truncate(std::uint64_t bytes) override {
      if (auto asked = disk_.ask(Call::kTruncate, path_); !asked) return asked;
      node_->resize(bytes);
      return {};
    }
    Result<std::uint64_t> size() override { return node_->bytes.size(); }

   private:
    FakeDisk& disk_;
    std::string path_;
    std::shared_ptr<Node> node_;
  };

  class Group final : public GroupSync {
   public:
    Group(FakeDisk& disk, std::string directory) : disk_(disk), directory_(std::move(directory)) {}
    Status sync() override {
      const Status asked = disk_.ask(Call::kSyncGroup, directory_);
      for (auto& [path, node] : disk_.names_) node->sync(asked.has_value());
      return asked;
    }

   private:
    FakeDisk& disk_;
    std::string directory_;
  };

  Status ask(Call call, const std::string& path) {
    ++calls[call];
    return fail(call, path);
  }

  /// Names that change at once, and what they stand for then; null: nothing.
  using NameStep = std::vector<std::pair<std::string, std::shared_ptr<Node>>>;
  void make_durable(const std::string& path, const std::shared_ptr<Node>& node) {
    if (node)
      durable_names_[path] = node;
    else
      durable_names_.erase(path);
  }

  std::map<std::string, std::shared_ptr<Node>> names_, durable_names_;
  std::vector<NameStep> unsynced_names_;
};

}  // namespace pando::manager::testing
