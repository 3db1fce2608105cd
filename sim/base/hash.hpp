// Numbers that look random but are the same on every machine. Not for cryptography.
//
//   FNV-1a, 64 bits: a short fingerprint of a text
//   SplitMix64 (Steele, Lea, Flood 2014): its step and its mixing function, which makes of every
//   number another without pattern
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

inline std::string hash_text(std::string_view text) { return fmt::format("{:016x}", fnv1a(text)); }

}  // namespace mllmsim
