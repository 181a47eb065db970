// A growable run of bytes with room to write at the end and to consume at the front.
//
// Used for the unsent bytes of a connection, for what a connection has read, and as scratch for one
// frame: given `inline_space`, it starts there and takes memory only when that is full. Not
// thread-safe; never zero-fills; views into it end with the next Reserve or Append.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace troupe::actors {

class ByteBuffer {
 public:
  ByteBuffer() = default;
  /// Starts in `inline_space`, which must outlive this object.
  ByteBuffer(char* inline_space, std::size_t size) : bytes_(inline_space), capacity_(size) {}
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;
  ~ByteBuffer() {
    if (owned_) std::free(bytes_);
  }

  char* data() { return bytes_ + begin_; }
  const char* data() const { return bytes_ + begin_; }
  std::size_t size() const { return end_ - begin_; }
  bool empty() const { return end_ == begin_; }
  std::string_view view() const { return {data(), size()}; }
  /// Bytes that Reserve would give without moving or allocating.
  std::size_t spare() const { return capacity_ - end_; }
  char* tail() { return bytes_ + end_; }

  /// Makes `count` bytes writable at tail(); Commit says how many were written.
  char* Reserve(std::size_t count) {
    if (count > capacity_ - end_) Grow(count);
    return bytes_ + end_;
  }
  void Commit(std::size_t count) { end_ += count; }
  /// `count` bytes at the end, uninitialised.
  char* Extend(std::size_t count) {
    char* at = Reserve(count);
    end_ += count;
    return at;
  }
  void Append(const void* from, std::size_t count) {
    if (count != 0) std::memcpy(Extend(count), from, count);
  }
  template <class T>
  void AppendValue(T value) {
    std::memcpy(Extend(sizeof value), &value, sizeof value);
  }
  /// Forgets `count` bytes at the front.
  void Consume(std::size_t count) {
    begin_ += count;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  /// Forgets all after the first `count` bytes.
  void Truncate(std::size_t count) { end_ = begin_ + count; }
  void Clear() { begin_ = end_ = 0; }
  /// Gives memory back when empty and larger than `keep`.
  void Shrink(std::size_t keep) {
    if (!empty() || !owned_ || capacity_ <= keep) return;
    std::free(bytes_);
    bytes_ = nullptr;
    owned_ = false;
    capacity_ = begin_ = end_ = 0;
  }

 private:
  void Grow(std::size_t count) {
    const std::size_t used = size();
    if (used + count <= capacity_ && begin_ >= capacity_ / 2) {
      std::memmove(bytes_, bytes_ + begin_, used);
    } else {
      std::size_t capacity = capacity_ < 4096 ? 4096 : capacity_ * 2;
      while (capacity < used + count) capacity *= 2;
      char* bytes = static_cast<char*>(std::malloc(capacity));
      if (bytes == nullptr) throw std::bad_alloc();
      if (used != 0) std::memcpy(bytes, bytes_ + begin_, used);
      if (owned_) std::free(bytes_);
      bytes_ = bytes;
      capacity_ = capacity;
      owned_ = true;
    }
    begin_ = 0;
    end_ = used;
  }

  char* bytes_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t capacity_ = 0;
  bool owned_ = false;
};

}  // namespace troupe::actors
