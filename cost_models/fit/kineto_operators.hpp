// What an operator of PyTorch asks for, told by its name and the shapes that were recorded with it.
//
//   products        aten::mm, addmm, bmm of one matrix; the pass by where it runs: inside
// autograd's                   backward the first matrix transposed is a weight gradient, otherwise
// an input                   gradient
//   attention       scaled_dot_product_attention's flash kernels, of GPUs and of CPUs
//   memory bound    norms, activation functions, log-softmax, embeddings, fused Adam, and element
// by                   element: sums, products, copies, fills. Bytes are what layers count for them
//                   (cost_models/layers): each tensor once, read or written.
//
// Fills are known but not measured: quicker than anything else that layers count as element by
// element. Everything else (views, allocations, reshapes) is no work of its own.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string_view>
#include <variant>

#include "cost_models/kernels/kernel.hpp"

namespace mllmsim::fit {

struct Fill {
  auto operator<=>(const Fill&) const = default;
};
using Asked = std::variant<costs::Gemm, costs::Attention, costs::MemoryBound, Fill>;

// args: of the event. Nothing for operators that are none of the above, or without shapes.
std::optional<Asked> asked_of(std::string_view name, const boost::json::value& args,
                              bool in_backward);

}  // namespace mllmsim::fit
