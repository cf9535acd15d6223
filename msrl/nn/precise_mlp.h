// A trained perceptron evaluated in double: for studies of its derivatives, where float rounding
// would hide what is looked for. Allocates; not for hot paths.
#ifndef MSRL_NN_PRECISE_MLP_H_
#define MSRL_NN_PRECISE_MLP_H_

#include <Eigen/Core>
#include <vector>

#include "msrl/nn/mlp.h"

namespace msrl {

class PreciseMlp {
 public:
  // A copy of one member's parameters. InvariantError if there is no such member.
  explicit PreciseMlp(const Mlp& network, int member = 0);

  struct Result {
    Eigen::VectorXd output;
    Eigen::VectorXd hidden;  // the last hidden layer; empty without hidden layers
  };
  Result Forward(const Eigen::VectorXd& input) const;

  // The gradient with respect to the input of d_output . output + d_hidden . hidden; an empty
  // d_hidden counts as zero. At a kink of ReLU: the side of zero.
  Eigen::VectorXd InputGradient(const Eigen::VectorXd& input, const Eigen::VectorXd& d_output,
                                const Eigen::VectorXd& d_hidden = {}) const;

 private:
  struct Layer {
    Eigen::MatrixXd weight;
    Eigen::VectorXd bias;
    Eigen::VectorXd scale, shift;  // of layer norm; empty: none
    Activation activation = Activation::kIdentity;
  };
  // What a layer needs for its way back.
  struct Trace {
    Eigen::VectorXd normalised;
    double inv_std = 1.0;
    Eigen::VectorXd before;  // the activation's argument
  };
  Eigen::VectorXd Run(const Layer& layer, const Eigen::VectorXd& input, Trace& trace) const;

  std::vector<Layer> layers_;
};

}  // namespace msrl

#endif  // MSRL_NN_PRECISE_MLP_H_
