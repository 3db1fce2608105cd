// Links by number, and what transfers put on them.
#pragma once

#include "sim/base/units.hpp"

namespace mllmsim {

using LinkId = Id<struct LinkTag>;

// How much one transfer puts on one link.
struct LinkUse {
  LinkId link;
  Bytes bytes;

  bool operator==(const LinkUse&) const = default;
};

}  // namespace mllmsim
