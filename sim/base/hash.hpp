// Numbers that look random but are the same on every machine. Not for cryptography.
//
//   FNV-1a, 64 bits: a short fingerprint of a text
//   SplitMix64 (Steele, Lea, Flood 2014): its step and its mixing function, which makes of every
//   number another without pattern
//   Digest: SplitMix64 chained over numbers, for sequences too long to write out as a text
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace mllmsim {

inline std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

inline constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15;

constexpr std::uint64_t split_mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

inline std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }
inline std::string hash_text(std::string_view text) { return hash_text(fnv1a(text)); }

// A fingerprint of whole numbers in their order: a few cycles each.
class Digest {
 public:
  void add(std::uint64_t number) { state_ = split_mix((state_ + kSplitMixStep) ^ number); }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace mllmsim
