function t(r){return n(r.split(`
`)[0])}function n(r){return r.replace(/:\w+:`~?([^`]+)`/g,"$1").replaceAll("``","")}export{t as a,n as b};
