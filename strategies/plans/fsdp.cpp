// PyTorch FSDP with full sharding: to the simulation the same as ZeRO-3 (zero3.cpp), under the name
// published comparisons use.
#include "strategies/job/strategy.hpp"

namespace mllmsim::plans {
namespace {

class Fsdp : public Strategy {
 public:
  Plan plan(const Job& job, const CostContext& costs) const override {
    return find_strategy("zero3")->make()->plan(job, costs);
  }
};

const Registration registration{
    {"fsdp", "FSDP: parameters sharded over all GPUs, no pipeline; the same as zero3", {}, [] {
       return std::unique_ptr<Strategy>(new Fsdp);
     }}};

}  // namespace
}  // namespace mllmsim::plans
