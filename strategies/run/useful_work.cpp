#include "strategies/run/useful_work.hpp"

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "cost_models/layers/model_flops.hpp"

namespace mllmsim::run {
namespace {

// Sums over samples; what samples have in common is counted once.
class Sum {
 public:
  explicit Sum(const Job& job)
      : model_(job.model),
        data_(*job.data.set),
        flops_(job.model),
        encoded_(model_.encoders.size()) {}

  void add(data::SampleIndex i) {
    const data::Sample& s = data_.samples[i];
    std::int64_t keys = 0;
    for (std::size_t e = 0; e < model_.encoders.size(); ++e) {
      const auto [sequences, tokens] = media(e, i);
      if (sequences == 0) continue;
      if (crosses(model_)) keys += image_tokens_of(model_.encoders[e], sequences, tokens);
      const bool tiles = tokens == sequences * model_.encoders[e].tokens_per_tile;
      const auto flops = [&, n = sequences, all = tokens] {  // nearly equal lengths, no token lost
        const std::int64_t length = all / n, longer = all % n;
        return flops_.encoder(e, {{{length, n - longer}, {length + 1, longer}}}).value;
      };
      work_.flops.value += encoded_[e].of(sequences, tokens, tiles, flops);
    }
    work_.flops.value += llm_.of(s.tokens, keys, keys == 0, [&] {
      return flops_.llm({{{s.tokens, 1, keys}}}).value;
    });
    work_.tokens += s.tokens;
  }

  const UsefulWork& work() const { return work_; }

 private:
  // Sequences and tokens that an encoder sees for something.
  std::pair<std::int64_t, std::int64_t> media(std::size_t e, data::SampleIndex i) const {
    if (!data_.media.empty()) return {data_.media[e][i].sequences, data_.media[e][i].tokens};
    const Encoder& encoder = model_.encoders[e];
    const data::Sample& s = data_.samples[i];
    const bool empty =
        data_.text_only.empty()
            ? s.tiles == 1 && s.tokens < encoder.output_tokens_per_tile && !crosses(model_)
            : data_.text_only[i] != 0;
    const std::int64_t tiles = empty ? 0 : s.tiles;
    return {tiles, tiles * encoder.tokens_per_tile};
  }

  const Model& model_;
  const data::DataSet& data_;
  costs::ModelFlops flops_;
  // By two numbers; the usual ones, where one of them says all, are listed.
  class Known {
   public:
    template <class Find>
    double of(std::int64_t n, std::int64_t other, bool usual, const Find& find) {
      constexpr std::size_t kListed = 1 << 16;
      const auto place = static_cast<std::size_t>(n);
      if (!usual || place >= kListed) {
        const auto [known, added] = others_.try_emplace({n, other});
        if (added) known->second = find();
        return known->second;
      }
      if (listed_.size() <= place) listed_.resize(2 * place + 1, kUnknown);
      if (listed_[place] == kUnknown) listed_[place] = find();
      return listed_[place];
    }

   private:
    static constexpr double kUnknown = -1;
    std::vector<double> listed_;
    std::map<std::pair<std::int64_t, std::int64_t>, double> others_;
  };

  std::vector<Known> encoded_;
  Known llm_;
  UsefulWork work_;
};

}  // namespace

UsefulWork useful_work(const Job& job, const data::Batches& pass,
                       const std::vector<std::int64_t>& steps) {
  Sum sum(job);
  for (const std::int64_t step : steps)
    for (std::int64_t position = 0; position < pass.micro_batches_per_rank; ++position)
      for (std::int64_t rank = 0; rank < pass.ranks; ++rank)
        for (const data::SampleIndex i : pass.at(step, position, rank)) sum.add(i);
  return sum.work();
}

}  // namespace mllmsim::run
