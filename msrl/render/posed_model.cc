#include "msrl/render/posed_model.h"

#include <algorithm>

#include "msrl/core/check.h"

namespace msrl {

PosedModel::PosedModel(const MujocoEnv& env)
    : env_(env), model_(mj_copyModel(nullptr, &env.model())), data_(MakeData(*model_)) {
  MSRL_CHECK(model_ != nullptr, "no copy of the model");
}

void PosedModel::Update() {
  const mjData& from = env_.data();
  std::copy_n(from.qpos, model_->nq, data_->qpos);
  std::copy_n(from.mocap_pos, 3 * model_->nmocap, data_->mocap_pos);
  std::copy_n(from.mocap_quat, 4 * model_->nmocap, data_->mocap_quat);
  mj_kinematics(model_.get(), data_.get());
  mj_comPos(model_.get(), data_.get());
  mj_camlight(model_.get(), data_.get());
  mj_tendon(model_.get(), data_.get());
}

}  // namespace msrl
