// Runs an ISF file by WebGL2, as `benchmarks/isf.py` asks for it: the frames as base64.
async (job) => {
  const {W,H,fs,vs,inputs,images,passes,frames}=job;
  const c=window.cv||(window.cv=document.createElement('canvas')); 
  let gl=window.glx; if(!gl){gl=window.glx=c.getContext('webgl2',{antialias:false,alpha:true}); gl.getExtension('EXT_color_buffer_float'); gl.getExtension('OES_texture_float_linear');}
  const sh=(t,s)=>{const x=gl.createShader(t);gl.shaderSource(x,s);gl.compileShader(x);if(!gl.getShaderParameter(x,gl.COMPILE_STATUS))throw new Error('compile '+(t==gl.VERTEX_SHADER?'vs ':'fs ')+gl.getShaderInfoLog(x));return x};
  try{
  const p=gl.createProgram();gl.attachShader(p,sh(gl.VERTEX_SHADER,vs));gl.attachShader(p,sh(gl.FRAGMENT_SHADER,fs));gl.bindAttribLocation(p,0,'isf_position');gl.linkProgram(p);if(!gl.getProgramParameter(p,gl.LINK_STATUS))throw new Error('link '+gl.getProgramInfoLog(p));
  gl.useProgram(p);
  const b=gl.createBuffer();gl.bindBuffer(gl.ARRAY_BUFFER,b);gl.bufferData(gl.ARRAY_BUFFER,new Float32Array([-1,-1,1,-1,-1,1,1,1]),gl.STATIC_DRAW);gl.enableVertexAttribArray(0);gl.vertexAttribPointer(0,2,gl.FLOAT,false,0,0);
  const U=n=>gl.getUniformLocation(p,n);
  const dec=s=>{const r=atob(s),a=new Uint8Array(r.length);for(let i=0;i<r.length;i++)a[i]=r.charCodeAt(i);return a};
  const tex=(w,h,f,data)=>{const t=gl.createTexture();gl.bindTexture(gl.TEXTURE_2D,t);gl.pixelStorei(gl.UNPACK_FLIP_Y_WEBGL,false);gl.texImage2D(gl.TEXTURE_2D,0,f?gl.RGBA32F:gl.RGBA8,w,h,0,gl.RGBA,f?gl.FLOAT:gl.UNSIGNED_BYTE,data);for(const k of [gl.TEXTURE_MIN_FILTER,gl.TEXTURE_MAG_FILTER])gl.texParameteri(gl.TEXTURE_2D,k,gl.LINEAR);for(const k of [gl.TEXTURE_WRAP_S,gl.TEXTURE_WRAP_T])gl.texParameteri(gl.TEXTURE_2D,k,gl.CLAMP_TO_EDGE);return t};
  const texs={},targets={};
  for(const n in images){const im=images[n];texs[n]=tex(im.w,im.h,false,dec(im.data))}
  for(const q of passes)if(q.target&&!targets[q.target]){const mk=()=>{const t=tex(q.w,q.h,q.float,null);const f=gl.createFramebuffer();gl.bindFramebuffer(gl.FRAMEBUFFER,f);gl.framebufferTexture2D(gl.FRAMEBUFFER,gl.COLOR_ATTACHMENT0,gl.TEXTURE_2D,t,0);gl.clearColor(0,0,0,0);gl.clear(gl.COLOR_BUFFER_BIT);return {t,f}};targets[q.target]={a:mk(),b:mk(),w:q.w,h:q.h}}
  const ot=tex(W,H,false,null),of=gl.createFramebuffer();gl.bindFramebuffer(gl.FRAMEBUFFER,of);gl.framebufferTexture2D(gl.FRAMEBUFFER,gl.COLOR_ATTACHMENT0,gl.TEXTURE_2D,ot,0);
  const out=[];
  for(let k=0;k<frames.length;k++){let lastT=null;
    for(let i=0;i<passes.length;i++){const q=passes[i];const T=q.target?targets[q.target]:null;const w=T?T.w:W,h=T?T.h:H;
      gl.useProgram(p);
      let unit=0;const bind=(n,t)=>{const l=U(n);if(l){gl.activeTexture(gl.TEXTURE0+unit);gl.bindTexture(gl.TEXTURE_2D,t);gl.uniform1i(l,unit);unit++}};
      for(const n in texs)bind(n,texs[n]);for(const n in targets)bind(n,targets[n].a.t);
      for(const n in inputs){const [ty,v]=inputs[n],l=U(n);if(!l)continue;if(ty=='float')gl.uniform1f(l,v);else if(ty=='int')gl.uniform1i(l,v);else if(ty=='vec2')gl.uniform2fv(l,v);else gl.uniform4fv(l,v)}
      gl.uniform1i(U('PASSINDEX'),i);gl.uniform2f(U('RENDERSIZE'),w,h);gl.uniform1f(U('TIME'),frames[k]);gl.uniform1f(U('TIMEDELTA'),1/60);gl.uniform1i(U('FRAMEINDEX'),k);gl.uniform4f(U('DATE'),2026,1,2,3600);
      gl.bindFramebuffer(gl.FRAMEBUFFER,T?T.b.f:of);gl.viewport(0,0,w,h);gl.disable(gl.BLEND);gl.clearColor(0,0,0,0);gl.clear(gl.COLOR_BUFFER_BIT);gl.drawArrays(gl.TRIANGLE_STRIP,0,4);
      if(T){const x=T.a;T.a=T.b;T.b=x}
      lastT=T;
    }
    const px=new Uint8Array(W*H*4);
    if(lastT){ if(lastT.w!=W||lastT.h!=H) throw new Error('last pass size'); const isf=passes[passes.length-1].float; gl.bindFramebuffer(gl.FRAMEBUFFER,lastT.a.f); if(isf){const fl=new Float32Array(W*H*4);gl.readPixels(0,0,W,H,gl.RGBA,gl.FLOAT,fl);for(let i=0;i<fl.length;i++)px[i]=Math.floor(Math.min(Math.max(fl[i]||0,0),1)*255+.5)}else gl.readPixels(0,0,W,H,gl.RGBA,gl.UNSIGNED_BYTE,px);}
    else {gl.bindFramebuffer(gl.FRAMEBUFFER,of);gl.readPixels(0,0,W,H,gl.RGBA,gl.UNSIGNED_BYTE,px);}
    let s='';for(let i=0;i<px.length;i+=8192)s+=String.fromCharCode.apply(null,px.subarray(i,i+8192));out.push(btoa(s));
  }
  return {out};
  }catch(e){return {error:String(e)}}
}
