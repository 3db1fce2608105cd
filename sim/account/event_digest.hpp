// A fingerprint of everything that happened in a simulated step.
//
// Per stream, over its tasks in their order: kind, start, end, bytes. All of these are whole
// numbers, so builds, machines and thread counts that simulate the same have equal digests, however
// finely they simulate it; one event that is a nanosecond off changes it.
//
// With events e_1 ... e_n of a stream its digest is the polynomial
//   b^n + sum over i of b^(n-i) (start_i + c end_i + d bytes_i + f kind_i)   modulo 2^64
// with odd b, c, d, f: a single other number changes it for certain, since no power of an odd
// number vanishes. It costs a few cycles per event, and of events that repeat themselves it has a
// closed form. The digest of a step is a chain over the streams that have events.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/kernel/simulation.hpp"

namespace mllmsim {

class StreamDigest {
 public:
  void add(TaskKind kind, Time start, Time end, Bytes bytes = {}) {
    value_ = value_ * kBase + (number(start.value) + number(end.value) * kEnd +
                               number(bytes.value) * kBytes + (number(kind) + 1) * kKind);
  }
  bool empty() const { return value_ == 1; }
  std::uint64_t value() const { return value_; }

  // Events in a row at times from 0: added at any other time, it is as if each of them was.
  class Row {
   public:
    void add(TaskKind kind, Time start, Time end) {
      StreamDigest one;
      one.value_ = fixed_;
      one.add(kind, start, end);
      fixed_ = one.value_;
      per_nanosecond_ = per_nanosecond_ * kBase + (1 + kEnd);
      factor_ *= kBase;
    }

   private:
    friend class StreamDigest;
    std::uint64_t factor_ = 1, fixed_ = 0, per_nanosecond_ = 0;
  };
  void add(const Row& row, Time at) {
    value_ = value_ * row.factor_ + (row.fixed_ + number(at.value) * row.per_nanosecond_);
  }

 private:
  template <class Number>
  static std::uint64_t number(Number n) {
    return static_cast<std::uint64_t>(n);
  }
  static constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15, kEnd = 0xbf58476d1ce4e5b9,
                                 kBytes = 0x94d049bb133111eb, kKind = 0xd6e8feb86659fd93;
  std::uint64_t value_ = 1;
};

// By stream.
std::uint64_t event_digest(const std::vector<StreamDigest>& streams);
std::uint64_t event_digest(const Program& program, const Timeline& timeline);

}  // namespace mllmsim
