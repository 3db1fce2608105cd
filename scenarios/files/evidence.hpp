// What the constants of shipped software and cluster files rest on.
//
// Such a file has a table `evidence` with a text for each key it sets: the kind of evidence, a
// colon, where exactly it is found:
//
//   measurement   somebody measured it
//   code          the framework's source says so
//   paper         a publication or a data sheet says so
//   estimate      reasoning
//   fit           chosen with published runs, which the text names
//
// The table is for readers: it changes no run and is no part of a scenario's text.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace mllmsim::scenarios {

inline constexpr std::array<std::string_view, 5> kEvidenceKinds = {"measurement", "code", "paper",
                                                                   "estimate", "fit"};

struct Evidence {
  std::string file;  // "software/megatron-2021"
  std::string key, value;
  std::string text;  // empty: the file does not say
};

// By file, then key. Keys that only name or size a thing (description, base, nodes) have none.
std::vector<Evidence> shipped_evidence();

}  // namespace mllmsim::scenarios
